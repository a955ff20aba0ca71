import { AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import type { RunningService } from '../../bootstrap/start/service.ts';
import type { TenantId } from '../../domain/shared/ids.ts';

/** Whether the call takes effect before it fails: a connection can break before or after the call. */
export type FaultMode = 'before' | 'after';

/** Makes the n-th call fail, counted over the database, the key store and all outgoing calls. */
export class Faults {
  #armed: { readonly n: number; readonly mode: FaultMode } | undefined;
  #count = 0;

  constructor({ container }: RunningService) {
    const store = container.get(Store);
    const [readStore, lists] = [store.read.bind(store), store.lists.bind(store)];
    store.commit = this.#failing(store.commit.bind(store));
    store.read = (tenantId: TenantId) => this.#wrap(readStore(tenantId));
    store.lists = (tenantId: TenantId) => this.#wrap(lists(tenantId));
    const kms = container.get(Kms);
    kms.sign = this.#failing(kms.sign.bind(kms));
    const webhooks = container.get(Webhooks);
    webhooks.post = this.#failing(webhooks.post.bind(webhooks));
    const servers = container.get(AuthorizationServers);
    servers.discover = this.#failing(servers.discover.bind(servers));
    servers.exchangeCode = this.#failing(servers.exchangeCode.bind(servers));
    servers.verifyIdToken = this.#failing(servers.verifyIdToken.bind(servers));
  }

  /** Makes the n-th call from now on fail. */
  arm(n: number, mode: FaultMode): void {
    this.#count = 0;
    this.#armed = { n, mode };
  }

  /** @returns whether the call that should fail was made. */
  disarm(): boolean {
    const wasArmed = this.#armed;
    this.#armed = undefined;
    return wasArmed !== undefined && this.#count >= wasArmed.n;
  }

  #wrap<T extends object>(target: T): T {
    const methods = Object.entries(target).map(([name, method]) => [name, this.#failing(method.bind(target))]);
    return Object.fromEntries(methods) as T;
  }

  // biome-ignore lint/suspicious/noExplicitAny: any method of any port
  #failing(call: (...parameters: any[]) => any): (...parameters: any[]) => any {
    return (...parameters) => {
      const wasArmed = this.#armed;
      if (wasArmed === undefined || ++this.#count !== wasArmed.n) return call(...parameters);
      const fault = new Error(`call ${wasArmed.n} fails ${wasArmed.mode} it happened`);
      if (wasArmed.mode === 'before') throw fault;
      return Promise.resolve(call(...parameters)).then(() => {
        throw fault;
      });
    };
  }
}
