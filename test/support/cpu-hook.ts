import { appendFileSync } from 'node:fs';
let last = process.cpuUsage();
let lastT = performance.now();
const step = (kind: string, file: string) => {
  const now = process.cpuUsage(); const t = performance.now();
  appendFileSync('/tmp/cpu-files.txt', `${kind}\t${file}\t${Math.round((now.user + now.system - last.user - last.system) / 1000)}\t${Math.round(t - lastT)}\n`);
  last = now; lastT = t;
};
export const mochaHooks = {
  beforeAll(this: any) { step('load', this.test?.parent?.suites?.[0]?.file?.split('/perf/')[1] ?? '?'); },
  afterAll(this: any) { step('run', this.test?.parent?.suites?.[0]?.file?.split('/perf/')[1] ?? '?'); },
};
