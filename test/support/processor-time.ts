/**
 * Milliseconds of processor time that this thread spends on synchronous work.
 * Unlike the time on a clock it hardly depends on what else the machine does.
 */
export function processorTime(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  return millisecondsOf(process.threadCpuUsage(before));
}

/** Milliseconds of processor time of this process, all threads, until the work is done. */
export async function processorTimeUntil(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  return millisecondsOf(process.cpuUsage(before));
}

function millisecondsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}
