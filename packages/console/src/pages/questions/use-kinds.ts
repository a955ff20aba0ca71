import { useEffect, useState } from 'preact/hooks';
import { type Identity, identities } from '../../shell/identities.ts';
import { type Kind, kindsOf } from './question.ts';
import { readIssued } from './read-issued.ts';

type Read = Readonly<Record<string, readonly unknown[] | undefined>>;
type Known = {
  readonly kinds: readonly Kind[];
  /** Whether what this tenant issues could be read. */
  readonly knowsOwn: boolean;
  /** Tenants whose credentials could not be read. */
  readonly unread: readonly string[];
};

/** Of each tenant that somebody of this window may read the credentials of, one client; the own one first. */
export function issuersOf(all: readonly Identity[], identity: Identity): readonly Identity[] {
  const readers = [identity, ...all].filter(({ tenantId, roles }) => tenantId !== undefined && roles.includes('issuance:manage'));
  return readers.filter(({ tenantId }, index) => readers.findIndex((other) => other.tenantId === tenantId) === index);
}

/** What can be asked for: what this tenant issues, what tenants issue that are logged in here, and the catalogue. */
export function useKinds(identity: Identity): Known {
  const issuers = issuersOf(identities.value, identity);
  const [read, setRead] = useState<Read>({});
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
