import { createSecretKey, randomBytes } from 'node:crypto';
import {
  type Beats,
  type Chores,
  type ServiceReader,
  type ServiceRepositories,
  Store,
  type TenantReader,
  type TenantRepositories,
  type TenantWriting,
  type Writing,
} from '../../../application/ports/store.ts';
import { hmacs, type Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { auditedService, auditedTenant } from '../audited-repositories.ts';
import { Journal } from '../journal.ts';
import { assertHolds, assertTenantHolds } from '../preconditions.ts';
import { Turnstile } from '../turnstile.ts';
import { AuditChains } from './audit-chains.ts';
import { authorizationBeats } from './authorization-beats.ts';
import { memoryChores } from './chores.ts';
import { deferredBeats } from './deferred-beats.ts';
import { serviceRepositories, tenantRepositories } from './repositories.ts';
import { sessionBeats } from './session-beats.ts';
import { State } from './state.ts';
import { statusBeats } from './status-beats.ts';
import { walletBeats } from './wallet-beats.ts';

/** Runs one synchronous step when no transaction is open. */
export type Pass = <T>(step: () => T) => Promise<T>;

/** The store for tests and trials: it forgets everything with the process. */
export class MemoryStore extends Store {
  readonly #state = new State();
  readonly #chains: AuditChains;
  readonly #turnstile = new Turnstile();
  readonly #pass: Pass = (step) => this.#turnstile.pass(step);
  readonly #chores = memoryChores(this.#state, this.#pass);

  /** @param macs of the audit log; under a key of its own unless stated. */
  constructor(macs: Macs = hmacs([{ id: 'memory', key: createSecretKey(randomBytes(32)) }])) {
    super();
    this.#chains = new AuditChains(this.#state, macs);
  }

  override get chores(): Chores {
    return this.#chores;
  }

  override beats(tenantId: TenantId): Beats {
    return {
      ...sessionBeats(this.#state, this.#pass, this.#chains, tenantId),
      ...walletBeats(this.#state, this.#pass, tenantId),
      ...authorizationBeats(this.#state, this.#pass, tenantId),
      ...deferredBeats(this.#state, this.#pass, this.#chains, tenantId),
      ...statusBeats(this.#state, this.#pass, this.#chains, tenantId),
    };
  }

  override forTenant<T>(tenantId: TenantId, work: (own: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing: TenantWriting,
  ): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing?: TenantWriting,
  ): Promise<T> {
    return this.#transaction(writing, async (journal) => {
      let touched = false;
      const touch = () => {
        touched = true;
      };
      const plain = {
        ...tenantRepositories(this.#state, tenantId, touch),
        audit: this.#chains.log(tenantId),
      };
      await assertHolds(writing, plain);
      const result = await work(auditedTenant(plain, tenantId, journal, now));
      if (touched) this.#state.raiseRevision(tenantId);
      return result;
    });
  }

  override forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing?: Writing): Promise<T> {
    return this.#transaction(writing, async (journal) => {
      const plain = { ...serviceRepositories(this.#state), audit: this.#chains.serviceLog() };
      await assertTenantHolds(writing, plain);
      return work(auditedService(plain, journal, now));
    });
  }

  override async ping(): Promise<void> {}

  #transaction<T>(writing: Writing | undefined, work: (journal: Journal) => Promise<T>): Promise<T> {
    return this.#turnstile.exclusively(async () => {
      const undo = this.#state.mark();
      const journal = new Journal(writing?.by);
      try {
        const result = await work(journal);
        await journal.write(now(), async (scope, additions) => this.#chains.append(scope, additions));
        return result;
      } catch (error) {
        undo();
        throw error;
      }
    });
  }
}

const now = () => new Date();
