import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checker } from './checker.ts';
import type { World } from './world.ts';

/** Deliveries and chains are looked at in every so many rounds, and in the last one. */
const WHOLE_EVERY = 20;

export type RoundAction = (number: number) => Promise<void>;

/** Result of one part of the suite. */
export class Group {
  readonly name: string;
  readonly planned: number;
  readonly violations: string[] = [];
  readonly facts: string[] = [];
  done = 0;
  skipped: string | undefined;
  /** Whether the run waits for interrupted deliveries; the short run does not. */
  readonly waits: boolean;
  readonly #began = performance.now();

  constructor(name: string, planned: number, waits = true) {
    this.name = name;
    this.planned = planned;
    this.waits = waits;
  }

  skip(reason: string): void {
    if (process.env['CI'] === 'true') throw new Error(`${this.name}: ${reason}`);
    this.skipped = reason;
  }

  get line(): string {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(0);
    if (this.skipped !== undefined) return `${this.name}: skipped, ${this.skipped}`;
    const facts = this.facts.length === 0 ? '' : `; ${this.facts.join(', ')}`;
    return `${this.name}: ${this.done} of ${this.planned} rounds, ${this.violations.length} violations, ${seconds} s${facts}`;
  }

  get isGood(): boolean {
    return this.skipped !== undefined || (this.violations.length === 0 && this.done === this.planned);
  }
}

/** Does the same again and again, and has it looked at each time. It ends with the first round in which something is wrong. */
export async function runRounds(group: Group, world: World, checker: Checker, runRound: RoundAction): Promise<void> {
  for (let number = 1; number <= group.planned; number++) {
    await runRound(number);
    const isWhole = number % WHOLE_EVERY === 0 || number === group.planned;
    group.violations.push(...(await checker.check({ all: isWhole, deliveries: isWhole && group.waits })));
    group.done = number;
    if (group.violations.length > 0) break;
    if (isWhole && group.waits) console.log(`  ${group.line}`);
  }
  reportGroup(group, world);
}

/** Prints the number of steps, which shows that the load ran. */
export function reportGroup(group: Group, { ledger }: World): void {
  if (group.violations.length > 0) {
    const file = join(tmpdir(), `vidimus-${group.name}.ledger`);
    ledger.keep(file);
    group.facts.push(`what callers were told is in ${file}`);
  }
  const issuances = [...ledger.issuances.values()];
  const presentations = [...ledger.presentations.values()];
  const count = (items: readonly unknown[]) => items.length;
  const { answered, unanswered, refused, unavailable } = ledger.counts;
  group.facts.push(
    `${issuances.reduce((sum, { entries }) => sum + entries.length, 0)} credentials`,
    `${count(ledger.revoked)} revoked`,
    `${count(presentations.filter(({ presented }) => presented > 0))} presented`,
    `${ledger.deliveries.size} webhooks`,
    `${answered} answers, ${unanswered} cut, ${refused} not taken, ${unavailable} of 5xx`,
  );
}
