import {
  type Beats,
  type Chores,
  type ServiceRepositories,
  Store,
  type TenantRepositories,
} from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { Turnstile } from '../turnstile.ts';
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
  readonly #turnstile = new Turnstile();
  readonly #pass: Pass = (step) => this.#turnstile.pass(step);
  readonly #chores = memoryChores(this.#state, this.#pass);

  override get chores(): Chores {
    return this.#chores;
  }

  override beats(tenantId: TenantId): Beats {
    return {
      ...sessionBeats(this.#state, this.#pass, tenantId),
      ...walletBeats(this.#state, this.#pass, tenantId),
      ...authorizationBeats(this.#state, this.#pass, tenantId),
      ...deferredBeats(this.#state, this.#pass, tenantId),
      ...statusBeats(this.#state, this.#pass, tenantId),
    };
  }

  override forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
  ): Promise<T> {
    return this.#transaction(async () => {
      let touched = false;
      const touch = () => {
        touched = true;
      };
      const result = await work(tenantRepositories(this.#state, tenantId, touch));
      if (touched) this.#state.raiseRevision(tenantId);
      return result;
    });
  }

  override forService<T>(work: (repositories: ServiceRepositories) => Promise<T>): Promise<T> {
    return this.#transaction(() => work(serviceRepositories(this.#state)));
  }

  override async ping(): Promise<void> {}

  #transaction<T>(work: () => Promise<T>): Promise<T> {
    return this.#turnstile.exclusively(async () => {
      const undo = this.#state.mark();
      try {
        return await work();
      } catch (error) {
        undo();
        throw error;
      }
    });
  }
}
