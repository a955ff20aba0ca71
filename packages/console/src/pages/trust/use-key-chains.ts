import { useEffect, useState } from 'preact/hooks';
import type { Identity } from '../../shell/identities.ts';
import type { KeyChain } from './key-chain.ts';
import { readKeyChains } from './read-key-chains.ts';

/** The key chains of a tenant, read when the page opens. */
export function useKeyChains(identity: Identity): { readonly chains?: readonly KeyChain[]; readonly fault?: unknown } {
  const [state, setState] = useState<{ chains?: readonly KeyChain[]; fault?: unknown }>({});
  useEffect(() => {
    const leave = new AbortController();
    readKeyChains(identity, leave.signal)
      .then((chains) => setState({ chains }))
      .catch((fault: unknown) => {
        if (!leave.signal.aborted) setState({ fault });
      });
    return () => leave.abort();
  }, [identity]);
  return state;
}
