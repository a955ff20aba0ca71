import { useEffect, useState } from 'preact/hooks';
import { type Identity, identities } from '../../shell/identities.ts';
import { type Kind, kindsOf } from './question.ts';
import { readIssued } from './read-issued.ts';

type KindsOfTenant = Readonly<Record<string, readonly unknown[] | undefined>>;
type AvailableKinds = {
  readonly kinds: readonly Kind[];
  readonly knowsOwn: boolean;
  /** Tenants whose credentials could not be read. */
  readonly unread: readonly string[];
};

export function issuersOf(all: readonly Identity[], identity: Identity): readonly Identity[] {
  const readers = [identity, ...all].filter(({ tenantId, roles }) => tenantId !== undefined && roles.includes('issuance:manage'));
  return readers.filter(({ tenantId }, index) => readers.findIndex((other) => other.tenantId === tenantId) === index);
}

export function useKinds(identity: Identity): AvailableKinds {
  const issuers = issuersOf(identities.value, identity);
  const [read, setRead] = useState<KindsOfTenant>({});
  const [unread, setUnread] = useState<readonly string[]>([]);
  const who = issuers.map(({ clientId }) => clientId).join('\n');
  useEffect(() => {
    const leave = new AbortController();
    setUnread([]);
    for (const issuer of issuers) {
      const tenant = issuer.tenantId ?? '';
      readIssued(issuer, leave.signal)
        .then((rows) => setRead((before) => ({ ...before, [tenant]: rows })))
        .catch(() => {
          if (!leave.signal.aborted) setUnread((before) => [...before, tenant]);
        });
    }
    return () => leave.abort();
  }, [identity, who]);
  const own = read[identity.tenantId ?? ''];
  const others = issuers.flatMap(({ tenantId = '' }) => {
    const rows = tenantId === identity.tenantId ? undefined : read[tenantId];
    return rows === undefined ? [] : [{ tenantId, configurations: rows }];
  });
  return { kinds: kindsOf(own ?? [], others), knowsOwn: own !== undefined, unread };
}
