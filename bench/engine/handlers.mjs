export function noop() {}
