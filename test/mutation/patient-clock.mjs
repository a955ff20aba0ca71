// Instrumented code is slow. Tests that limit the time of something read clocks that are slowed down by this factor.
const FACTOR = 100;

const now = performance.now.bind(performance);
performance.now = () => now() / FACTOR;

for (const clock of ['cpuUsage', 'threadCpuUsage']) {
  const usage = process[clock].bind(process);
  process[clock] = (before) => {
    const { user, system } = usage();
    const { user: userBefore, system: systemBefore } = before ?? { user: 0, system: 0 };
    return { user: user / FACTOR - userBefore, system: system / FACTOR - systemBefore };
  };
}
