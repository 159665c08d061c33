import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SAMPLE_TRACE } from '../../../src/cli/data/azure-functions-2019.js';
import {
  busiestHourStart,
  minuteTotal,
  parseTrace,
  readTrace,
} from '../../../src/cli/load/trace.js';
import { InvalidArgumentError } from '../../../src/index.js';

const HEADER = 'function,owner,m1,m2,m3';

describe('the trace parser', () => {
  it('reads counts by function and minute, an empty count meaning none', async () => {
    const trace = await parseTrace([HEADER, 'f1,o1,1,,3', '', 'f2,o1,,20,30'], 'test');
    expect(trace.functions).toEqual(['f1', 'f2']);
    expect(trace.minutes).toBe(3);
    expect([...trace.counts]).toEqual([1, 0, 0, 20, 3, 30]);
    expect([0, 1, 2].map((minute) => minuteTotal(trace, minute))).toEqual([1, 20, 33]);
  });

  it.each([
    [['f1,o1,1,2,3'], /line 1 starts with 'f1,o1,1'; needed: 'function,owner,m1/],
    [[HEADER], /no functions/],
    [[], /no functions/],
    [[HEADER, 'f1,o1,1,2'], /line 2 has 4 columns; needed: 5/],
    [[HEADER, 'f1,o1,1,2,3', 'f2,o1,1,2,3,4'], /line 3 has 6 columns; needed: 5/],
    [[HEADER, '', 'f1,o1,1,x,3'], /line 3 column m2 is 'x'; allowed: a whole number/],
    [[HEADER, 'f1,o1,1,-2,3'], /line 2 column m2 is '-2'/],
    [[HEADER, 'f1,o1,1,2,1.5'], /line 2 column m3 is '1.5'/],
    [[HEADER, 'f1,o1,1,99999999,3'], /line 2 column m2 is '99999999'/],
    [[HEADER, ',o1,1,2,3'], /line 2 has no function name/],
    [[HEADER, 'f1,o1,1,2,3', 'f1,o2,1,2,3'], /line 3 repeats function 'f1' of line 2/],
  ])('%j: a typed error that names the line', async (lines, message) => {
    const parsing = parseTrace(lines, 'test');
    await expect(parsing).rejects.toThrow(InvalidArgumentError);
    await expect(parsing).rejects.toThrow(message);
  });

  it('reads a file, and says so when there is none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tickwheel-trace-'));
    try {
      const file = join(folder, 'trace.csv');
      await writeFile(file, `${HEADER}\r\nf1,o1,1,,3\r\n`);
      expect([...(await readTrace(file)).counts]).toEqual([1, 0, 3]);
      await expect(readTrace(join(folder, 'none.csv'))).rejects.toThrow(
        /--trace can't be read: ENOENT/,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('finds the hour with the most invocations', async () => {
    const counts = Array.from({ length: 200 }, (_, minute) =>
      minute >= 70 && minute < 130 ? 5 : 4,
    );
    const header = `function,owner,${counts.map((_, minute) => `m${minute + 1}`).join(',')}`;
    const trace = await parseTrace([header, `f1,o1,${counts.join(',')}`], 'test');
    expect(busiestHourStart(trace)).toBe(70);
  });

  it('takes the start of a trace shorter than an hour', async () => {
    const trace = await parseTrace([HEADER, 'f1,o1,1,2,3'], 'test');
    expect(busiestHourStart(trace)).toBe(0);
  });

  it('reads the bundled sample: 120 functions, an hour, the invocations it names', async () => {
    const trace = await parseTrace(SAMPLE_TRACE.split('\n'), 'sample');
    expect(trace.functions).toHaveLength(120);
    expect(trace.minutes).toBe(60);
    expect(trace.counts.reduce((sum, count) => sum + count, 0)).toBe(1_329_590);
  });
});
