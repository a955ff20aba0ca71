import { setTimeout as pause } from 'node:timers/promises';
import { Buyer } from './buyer.ts';
import { NoAnswer } from './calls.ts';
import type { Issuance } from './ledger.ts';
import { Shopper } from './shopper.ts';
import { Steps } from './steps.ts';
import type { World } from './world.ts';

const AFTER_FAULT_MS = 40;
const BUYERS = 3;
const SHOPPERS = 3;
/** Of what was issued, so much is revoked. */
const REVOKED_SHARE = 0.5;
/** For how long what is under way when the load ends is repeated. */
const LAST_ATTEMPTS_MS = 3_000;

/** Wallets that buy and show, and an administrator who revokes and changes how the tenant issues; each repeats what was not answered. */
export class Load {
  readonly #world: World;
  readonly #steps: Steps;
  readonly #running: Promise<void>[] = [];
  readonly #issued: Issuance[] = [];
  #isOver = false;

  constructor(world: World) {
    this.#world = world;
    this.#steps = new Steps(world.ledger);
  }

  start(): this {
    const buyer = new Buyer(this.#world, this.#steps);
    const shopper = new Shopper(this.#world, this.#steps);
    const buy = async () => {
      const issuance = await buyer.issue();
      if (issuance !== undefined) this.#issued.push(issuance);
    };
    const work = [
      ...Array.from({ length: BUYERS }, () => buy),
      ...Array.from({ length: SHOPPERS }, (_, at) => () => shopper.present(at % 2 === 0)),
      () => this.#revoke(),
      () => this.#administer(),
    ];
    for (const one of work) this.#running.push(this.#repeat(one));
    return this;
  }

  /** From now on a refusal is no fault. */
  forgive(): void {
    this.#steps.isForgiving = true;
  }

  /** Lets what is under way come to an end, but nothing is begun any more. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const final = setTimeout(() => {
      this.#steps.isFinal = true;
    }, LAST_ATTEMPTS_MS);
    await Promise.all(this.#running);
    clearTimeout(final);
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      try {
        await work();
      } catch (error) {
        // Only silence is forgiven to the service; the rest is told.
        if (!(error instanceof NoAnswer)) this.#world.ledger.violate(String((error as Error).stack));
        await pause(AFTER_FAULT_MS);
      }
    }
  }

  async #revoke(): Promise<void> {
    const issuance = this.#issued.shift();
    if (issuance === undefined) return void (await pause(20));
    if (Math.random() > REVOKED_SHARE) return;
    const { revocations, session } = issuance;
    const answer = await this.#steps.must('revoke', 201, () => {
      revocations.asked++;
      this.#world.ledger.note('revoking', { session });
      return this.#world.call('POST', '/session/revoke', { sessionId: session, status: 1 });
    });
    if (answer === undefined) return;
    revocations.told++;
    this.#world.ledger.note('revoked', { session });
    await pause(Math.random() * 20);
  }

  async #administer(): Promise<void> {
    const { config } = this.#world.ledger;
    const number = ++config.asked;
    const json = { display: [{ name: `Version ${number}`, locale: 'en' }], batchSize: 10 };
    const write = () => this.#world.call('POST', '/issuer/config', json);
    if ((await this.#steps.must('configure', 201, write)) !== undefined) config.told = number;
    await pause(50);
  }
}
