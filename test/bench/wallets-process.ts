import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { MeasuringTimes } from './meter.ts';
import { cpuMs } from './processor-time.ts';
import type { ScenarioName } from './scenarios.ts';
import type { Format, Measured, Order, Report, StatusList, World } from './world.ts';

const MODULE = fileURLToPath(new URL('wallets.ts', import.meta.url));

/** The bench's end of the channel to the process of the wallets. */
export class WalletsProcess {
  readonly #child: ChildProcess;
  /** Which of the worlds that this process knows. */
  readonly #world: number;

  constructor(child = fork(MODULE, { execArgv: [] }), world = 0) {
    this.#child = child;
    this.#world = world;
  }

  /** The same wallets, for another service. */
  spawnSibling(): WalletsProcess {
    return new WalletsProcess(this.#child, this.#world + 1);
  }

  cpuMs(): number {
    const { pid } = this.#child;
    return pid === undefined ? 0 : cpuMs(pid);
  }

  async prepare(world: World): Promise<void> {
    await this.#order({ kind: 'prepare', world });
  }

  /** Issues until the wallets hold so many credentials of the format with a status. */
  async collect(format: Format, count: number): Promise<void> {
    await this.#order({ kind: 'collect', format, count });
  }

  /** Number of revocable credentials in this list. */
  async addRevocable(list: StatusList, count: number): Promise<void> {
    await this.#order({ kind: 'revocable', list, count });
  }

  /** Presents so many times, both formats in turn. @throws Error for a wrong answer. */
  async present(count: number): Promise<void> {
    await this.#order({ kind: 'present', count });
  }

  /** @param sample is called when the first window begins and when each of them ends, with the flows that were over. */
  async run(scenario: ScenarioName, times: MeasuringTimes, sample: (flows: number) => void): Promise<Measured> {
    const lastReport = await this.#order({ kind: 'run', scenario, ...times }, sample);
    if (lastReport.kind !== 'measured') throw new Error('the wallets gave no result');
    return lastReport.measured;
  }

  stop(): void {
    this.#child.kill();
  }

  #order(order: Order, sample?: (flows: number) => void): Promise<Report> {
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.#child.off('message', onReport);
        this.#child.off('exit', onExit);
      };
      const onReport = (report: Report) => {
        if (report.kind === 'mark') return sample?.(report.flows);
        finish();
        if (report.kind === 'broken') reject(new Error(report.message));
        else resolve(report);
      };
      const onExit = () => {
        finish();
        reject(new Error('the process of the wallets ended'));
      };
      this.#child.on('message', onReport);
      this.#child.once('exit', onExit);
      this.#child.send({ ...order, at: this.#world });
    });
  }
}
