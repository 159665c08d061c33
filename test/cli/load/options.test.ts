import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  declareLoadOptions,
  parseLoadOptions,
  type RawOptions,
} from '../../../src/cli/load/options.js';
import { InvalidArgumentError } from '../../../src/index.js';

function parse(...args: string[]) {
  const command = declareLoadOptions(new Command().exitOverride());
  command.parse(args, { from: 'user' });
  return parseLoadOptions(command.opts<RawOptions>());
}

describe('load-test flags', () => {
  it('plays a minute of the bundled sample with a report when nothing is said', () => {
    expect(parse()).toMatchObject({
      store: 'lmdb',
      load: { kind: 'trace', file: undefined, speed: 10, fromMinute: undefined },
      durationMs: 60_000,
      dueInMs: 2000,
      pendingTasks: 0,
      keys: 'none',
      jsonFile: undefined,
      reportFile: 'report.html',
    });
  });

  it('reads every flag of a synthetic load', () => {
    const options = parse(
      ...['--store', 'memory', '--rate', '20000', '--duration', '20s', '--due-in', '500ms'],
      ...['--pending', '1000', '--spread', '1d', '--tenants', '7', '--threads', '3'],
      ...['--payload', '128', '--keys', 'ordered', '--work', '5ms', '--seed', '9'],
      ...['--json', 'out.json', '--report', 'out.html'],
    );
    expect(options).toEqual({
      store: 'memory',
      load: { kind: 'synthetic', ratePerSecond: 20_000 },
      durationMs: 20_000,
      dueInMs: 500,
      warmupMs: 4000,
      pendingTasks: 1000,
      spreadMs: 86_400_000,
      tenants: 7,
      threads: 3,
      payloadBytes: 128,
      keys: 'ordered',
      workMs: 5,
      seed: 9,
      jsonFile: 'out.json',
      reportFile: 'out.html',
    });
  });

  it('plays a trace to its end unless a duration is given, and writes no report unasked', () => {
    const options = parse('--trace', 'day.csv', '--speed', '60', '--from', '0');
    expect(options.load).toEqual({ kind: 'trace', file: 'day.csv', speed: 60, fromMinute: 0 });
    expect(options.durationMs).toBeUndefined();
    expect(options.reportFile).toBeUndefined();
    expect(parse('--trace', 'day.csv', '--duration', '120s').durationMs).toBe(120_000);
  });

  it('takes a plain number for milliseconds, as the API does', () => {
    expect(parse('--rate', '1', '--duration', '1500').durationMs).toBe(1500);
  });

  it.each([
    ['--rate', 'fast', /--rate is 'fast'; allowed: a number, 0 to 1000000/],
    ['--rate', '-1', /--rate is '-1'; allowed/],
    ['--rate', '1e9', /--rate is '1e9'; allowed/],
    ['--duration', '20 s', /--duration is '20 s'; allowed: milliseconds/],
    ['--due-in', 'soon', /--due-in is 'soon'; allowed/],
    ['--pending', '1.5', /--pending is '1.5'; allowed: a whole number, 0 to 100000000/],
    ['--tenants', '0', /--tenants is '0'; allowed: a whole number, 1 to/],
    ['--threads', '0', /--threads is '0'; allowed: a whole number, 1 to/],
    ['--payload', '300000', /--payload is '300000'; allowed: a whole number, 0 to 256000/],
    ['--keys', 'some', /--keys is 'some'; allowed: none, random, ordered/],
    ['--store', 'redis', /--store is 'redis'; allowed: memory/],
    ['--seed', '4294967296', /--seed is '4294967296'; allowed: a whole number, 0 to 4294967295/],
    ['--speed', '0', /--speed is '0'; allowed: a number above 0/],
    ['--from', 'noon', /--from is 'noon'; allowed: a whole number/],
  ])('%s %s: names the flag, the value and what is allowed', (flag, value, message) => {
    expect(() => parse(flag, value)).toThrow(InvalidArgumentError);
    expect(() => parse(flag, value)).toThrow(message);
  });

  it.each(['trace', 'speed', 'from'])('refuses --%s beside --rate', (flag) => {
    expect(() => parse('--rate', '5', `--${flag}`, '1')).toThrow(/beside --rate/);
  });
});
