// What an advance has expired: refs in the scratch area, in order of due tick, at most EXPIRED_MAX.
import { EXPIRED_MAX } from './constants';
import { SCRATCH } from './layout';

/** Refs in the buffer. */
export let expired: u32 = 0;
/** Records moved down a level by the last advance. */
export let moved: u32 = 0;

export function startCounting(): void {
  expired = 0;
  moved = 0;
}

// @ts-ignore: decorator
@inline
export function putExpired(position: u32, ref: u32): void {
  assert(position < EXPIRED_MAX, 'the buffer of expired refs is full');
  store<u32>(SCRATCH + <usize>position * 4, ref);
}

// @ts-ignore: decorator
@inline
export function setExpired(count: u32): void {
  expired = count;
}

// @ts-ignore: decorator
@inline
export function setMoved(count: u32): void {
  moved = count;
}
