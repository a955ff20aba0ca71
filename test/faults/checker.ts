import { setTimeout as pause } from 'node:timers/promises';
import { rawSql } from '../support/postgres-server.ts';
import { runProcess } from '../support/programs.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { parseStatuses } from '../support/revocable-cards.ts';
import type { Answer } from '../support/test-service.ts';
import { inParallel, takeSample, withRetries } from './calls.ts';
import { entryKey } from './ledger.ts';
import type { World } from './world.ts';

const SPREAD_MS = 6_000;
/** Sessions of rounds before that are looked at once more in each round; all of them in the end. */
const SAMPLE = 20;
const CODES = 5;
const PATIENCE_MS = 60_000;

/** Compares the responses to callers with the state of the service. */
export class Checker {
  readonly #world: World;
  readonly #spreadMs: number;
  readonly #violations: string[] = [];
  /** Already checked sessions. */
  readonly #seen = new Set<string>();
  readonly #handedOut = new Map<string, string>();
  #countedEntries = new Map<string, number>();
  #reported = 0;
  #lastSequence = 0;
  readonly #audited = new Map<string, number>();
  #anchors: readonly string[] = [];

  /** @param spreadMs time until all processes serve a change. */
  constructor(world: World, spreadMs = SPREAD_MS) {
    this.#world = world;
    this.#spreadMs = spreadMs;
  }

  /**
   * @param all looks at everything again. @param deliveries waits until each has ended, which takes a job of the service some seconds.
   * @returns what is new and wrong.
   */
  async check({ all: sessions = false, deliveries = false } = {}): Promise<readonly string[]> {
    this.remember();
    await this.#spent();
    await this.#sessions(sessions);
    await this.#lists();
    await this.#configuration();
    await this.#auditLog();
    if (deliveries) await this.#deliveries();
    if (sessions) await this.#auditChain();
    const { violations } = this.#world.ledger;
    const newProblems = [...violations.slice(this.#reported), ...this.#violations.splice(0)];
    this.#reported = violations.length;
    return newProblems;
  }

  /** Drops records that an accepted restoration of the database has undone. */
  forgive(): void {
    this.#audited.clear();
    this.#lastSequence = 0;
    this.#anchors = [];
  }

  #fault(description: string): void {
    this.#violations.push(description);
    this.#world.ledger.log('violation', { detail: description });
  }

  /** Checks that no status entry was ever used for two credentials. */
  remember(): void {
    for (const { session, entries } of this.#world.ledger.issuances.values()) {
      const countedEntries = this.#countedEntries.get(session) ?? 0;
      for (const entry of entries.slice(countedEntries)) {
        const otherSession = this.#handedOut.get(entryKey(entry));
        if (otherSession !== undefined) this.#fault(`${entryKey(entry)} was given to ${otherSession} and to ${session}`);
        this.#handedOut.set(entryKey(entry), session);
      }
      this.#countedEntries.set(session, entries.length);
    }
  }

  /** A code of any time before opens nothing. */
  async #spent(): Promise<void> {
    const { ledger, deployment, tenant } = this.#world;
    for (const code of takeSample(ledger.spent, CODES)) {
      const { status } = await withRetries(() => new RawWallet(deployment, tenant.id).redeem(code));
      if (status === 200) this.#fault(`a code was redeemed that had been before: ${code}`);
    }
  }

  /** Checks that acknowledged changes are stored. */
  async #sessions(isFinal: boolean): Promise<void> {
    const { issuances, presentations } = this.#world.ledger;
    const sessions = [...issuances.keys(), ...presentations.keys()];
    const seenSessions = sessions.filter((session) => this.#seen.has(session));
    const sample = isFinal ? seenSessions : takeSample(seenSessions, SAMPLE);
    const due = [...sessions.filter((session) => !this.#seen.has(session)), ...sample];
    for (const session of due) this.#seen.add(session);
    await inParallel(due, (session) => this.#session(session));
  }

  async #session(session: string): Promise<void> {
    const { issuances, presentations } = this.#world.ledger;
    const answer = await this.#ask(`/session/${session}`);
    if (answer.status !== 200) return this.#fault(`${session} is gone: ${answer.status}`);
    const { status, credentials } = answer.body;
    const issuance = issuances.get(session);
    if (issuance !== undefined && issuance.entries.length > 0 && status !== 'completed')
      this.#fault(`${session} was issued and is ${status}`);
    const presentation = presentations.get(session);
    if (presentation === undefined) return;
    if (presentation.presented > 0 && (status !== 'completed' || credentials?.[0]?.values?.name !== 'Ada'))
      this.#fault(`${session} was presented and is ${status}`);
    const ids = this.#world.ledger.deliveries.get(session);
    if (!presentation.isHooked || status !== 'completed') return;
    if (ids?.size !== 1) this.#fault(`${session} is completed and its backend heard ${ids?.size ?? 0} ids`);
  }

  /** Checks that exactly the revoked credentials are revoked in the list of each process. */
  async #lists(): Promise<void> {
    const { issuances } = this.#world.ledger;
    const end = performance.now() + this.#spreadMs;
    for (;;) {
      const mismatches: string[] = [];
      for (const memberIndex of this.#world.deployment.members.keys()) {
        const lists = new Map<string, (index: number) => number>();
        for (const { entries, revocations, session } of issuances.values()) {
          for (const entry of entries) {
            if (!lists.has(entry.listId)) lists.set(entry.listId, await this.#list(memberIndex, entry.listId));
            const status = lists.get(entry.listId)?.(entry.idx);
            if (revocations.told > 0 && status !== 1)
              mismatches.push(`${session} was revoked and ${entryKey(entry)} is ${status} at process ${memberIndex}`);
            if (revocations.asked === 0 && status !== 0)
              mismatches.push(`${session} was not revoked and ${entryKey(entry)} is ${status} at process ${memberIndex}`);
          }
        }
      }
      if (mismatches.length === 0) return;
      if (performance.now() > end) return void mismatches.slice(0, 5).map((mismatch) => this.#fault(mismatch));
      await pause(200);
    }
  }

  async #list(memberIndex: number, id: string): Promise<(index: number) => number> {
    const path = `/${this.#world.tenant.id}/status-list/${id}`;
    const answer = await withRetries(() => this.#world.deployment.callAt(memberIndex, 'GET', path));
    if (answer.status !== 200) return () => -answer.status;
    return parseStatuses(answer);
  }

  async #configuration(): Promise<void> {
    const { config } = this.#world.ledger;
    if (config.told === 0) return;
    const { body } = await this.#ask('/issuer/config');
    const version = Number(/Version (\d+)/.exec(JSON.stringify(body))?.[1] ?? 0);
    if (version < config.told || version > config.asked)
      this.#fault(`the configuration is version ${version}, told was ${config.told} of ${config.asked}`);
  }

  /** One entry for each revocation that was acknowledged, one more at most for each that had no answer. */
  async #auditLog(): Promise<void> {
    let path: string | undefined = '/audit-log?limit=500&kind=session&action=revoked';
    let newest = this.#lastSequence;
    while (path !== undefined) {
      const answer: Answer = await this.#ask(path);
      if (answer.status !== 200) return this.#fault(`the audit log: ${answer.status} ${answer.text}`);
      const newEntries = answer.body.filter((entry: { sequence: number }) => entry.sequence > this.#lastSequence);
      for (const { target, sequence } of newEntries) {
        this.#audited.set(target, (this.#audited.get(target) ?? 0) + 1);
        newest = Math.max(newest, sequence);
      }
      const nextPage: string | undefined = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
      path = newEntries.length === answer.body.length ? nextPage?.replace(this.#world.deployment.address, '') : undefined;
    }
    this.#lastSequence = newest;
    for (const { session, revocations } of this.#world.ledger.issuances.values()) {
      const entries = this.#audited.get(session) ?? 0;
      if (entries < revocations.told || entries > revocations.asked)
        this.#fault(`${session}: ${entries} audit entries, told ${revocations.told} of ${revocations.asked}`);
    }
  }

  /** Each delivery that was begun ends, under its one id. */
  async #deliveries(): Promise<void> {
    const { databaseUrl, ledger } = this.#world;
    const end = performance.now() + PATIENCE_MS;
    const undelivered = () =>
      rawSql(databaseUrl, async (run) => {
        const rows = await run('select count(*) as count from pending_deliveries');
        // A minute is over.
        if (Number(rows[0]?.['count']) > 0) await run('update pending_deliveries set due_at = 0');
        return Number(rows[0]?.['count']);
      });
    let count = await withRetries(undelivered);
    while (count > 0 && performance.now() < end) {
      await pause(1_000);
      count = await withRetries(undelivered);
    }
    if (count > 0) this.#fault(`${count} deliveries do not end`);
    await inParallel([...ledger.deliveries.keys()], async (session) => {
      const { body } = await this.#ask(`/session/${session}`);
      const ids = ledger.deliveries.get(session)?.size;
      const states = (body?.deliveries ?? []).map(({ state, result }: Record<string, string>) => state ?? result);
      if (ids !== 1) this.#fault(`the backend heard of ${session} under ${ids} ids`);
      // The backend is also notified of rejections.
      const { wasRefused } = ledger.presentations.get(session) ?? {};
      const ends = wasRefused ? ['completed', 'failed'] : ['completed'];
      if (!ends.includes(body?.status) || states.join() !== 'delivered')
        this.#fault(`the backend heard of ${session}, which is ${body?.status}, ${states}`);
    });
  }

  async #auditChain(): Promise<void> {
    const { environment } = this.#world.deployment;
    const expectArgs = this.#anchors.flatMap((anchor) => ['--expect', anchor]);
    const { code, stdout, stderr } = await runProcess('commands/audit-verify', expectArgs, environment as never);
    if (code !== 0) return this.#fault(`audit:verify: ${stdout} ${stderr}`);
    this.#anchors = stdout.trim().split('\n');
  }

  #ask(path: string): Promise<Answer> {
    return withRetries(() => this.#world.call('GET', path));
  }
}
