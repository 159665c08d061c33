/** Errors as plain fields and back, so that they cross threads and stores with their class, code and causes. */
import * as errors from '../core/errors.js';

export interface ErrorFields {
  /** The built-in class that it is or extends. */
  readonly kind: string;
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: unknown;
  /** Of an AggregateError. */
  readonly errors?: unknown;
  /** Its own enumerable fields: `code` and the like. */
  readonly own: Readonly<Record<string, unknown>>;
}

type ErrorClass = new (message: string) => Error;

const BUILT_IN = new Map<string, ErrorClass>(
  [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((each) => [
    each.name,
    each as ErrorClass,
  ]),
);

/** This library's own classes by the prototype's code, which is set on each instance. */
const OWN_CLASSES = new Map<string, object>();
for (const [name, each] of Object.entries(errors)) {
  const isError = typeof each === 'function' && each.prototype instanceof Error;
  if (isError) OWN_CLASSES.set(name, each.prototype as object);
}

/** The fields of an error, `own` left empty. Getters of the error's classes are read. */
export function fieldsOfError(error: Error): ErrorFields {
  return {
    kind: kindOf(error),
    name: String(error.name),
    message: String(error.message),
    ...(typeof error.stack === 'string' ? { stack: error.stack } : {}),
    ...(isHidden(error, 'cause') ? { cause: error.cause } : {}),
    ...(isHidden(error, 'errors') ? { errors: (error as AggregateError).errors } : {}),
    own: {},
  };
}

/** Has the field, as the built-in errors do: not enumerable. Others are in `own`. */
function isHidden(error: Error, name: string): boolean {
  return Object.hasOwn(error, name) && !Object.prototype.propertyIsEnumerable.call(error, name);
}

function kindOf(error: Error): string {
  if (error instanceof AggregateError) return 'AggregateError';
  for (const [kind, each] of BUILT_IN) if (error instanceof each) return kind;
  return 'Error';
}

export function reviveError(fields: ErrorFields): Error {
  const error =
    fields.kind === 'AggregateError'
      ? new AggregateError([], fields.message)
      : new (BUILT_IN.get(fields.kind) ?? Error)(fields.message);
  const { code, name } = fields.own;
  if (typeof code === 'string' && code.startsWith('TICKWHEEL_') && typeof name === 'string') {
    const prototype = OWN_CLASSES.get(name);
    if (prototype !== undefined) Object.setPrototypeOf(error, prototype);
  }
  if ('cause' in fields) hide(error, 'cause', fields.cause);
  if ('errors' in fields) hide(error, 'errors', fields.errors);
  hide(error, 'stack', fields.stack);
  Object.assign(error, fields.own);
  if (error.name !== fields.name) hide(error, 'name', fields.name);
  return error;
}

/** Sets a field as errors have theirs: not enumerable. */
function hide(error: Error, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true });
}
