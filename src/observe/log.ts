/** A pino-like logger: `log.info({ taskId }, 'message')` or `log.info('message')`. */
export interface Logger {
  debug(fields: object | string, message?: string): void;
  info(fields: object | string, message?: string): void;
  warn(fields: object | string, message?: string): void;
  error(fields: object | string, message?: string): void;
  child?(bindings: object): Logger;
}

const ignore = (): void => {};

/** The default: a library is silent unless it is given a logger. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };
