import type { Observer } from '../adapters/system/observed/observer.ts';
import type { Kms } from '../application/ports/kms.ts';
import type { Remote } from '../application/ports/remote.ts';
import type { Store } from '../application/ports/store.ts';
import type { Webhooks } from '../application/ports/webhooks.ts';

type Ports = { readonly store: Store; readonly kms: Kms; readonly remote: Remote };

export type ObservedPorts = Ports & { readonly webhooks: (webhooks: Webhooks) => Webhooks };

/** The same ports, and what is done through them is told of. As they are where nobody looks. */
export async function observedPorts(ports: Ports, observer: Observer | undefined): Promise<ObservedPorts> {
  if (observer === undefined) return { ...ports, webhooks: (webhooks) => webhooks };
  const [{ ObservedStore }, { ObservedKms }, { ObservedRemote }, { ObservedWebhooks }] = await Promise.all([
    import('../adapters/system/observed/observed-store.ts'),
    import('../adapters/system/observed/observed-kms.ts'),
    import('../adapters/system/observed/observed-remote.ts'),
    import('../adapters/system/observed/observed-webhooks.ts'),
  ]);
  return {
    store: new ObservedStore(ports.store, observer),
    kms: new ObservedKms(ports.kms, observer),
    remote: new ObservedRemote(ports.remote, observer),
    webhooks: (webhooks) => new ObservedWebhooks(webhooks, observer),
  };
}
