import { isIP } from 'node:net';
import type { buildConnector as Connector } from 'undici';
import { RemoteError } from '../../application/ports/remote.ts';
import { type GuardOfOne, type Target, targetOf } from './address-guard.ts';
import type { ResolvedAddress } from './name-resolver.ts';
import { buildConnector } from './undici-parts.ts';

const CONNECT_TIMEOUT_MS = 5000;

/**
 * Connects only where the guard lets it. The check stands here, behind name resolution, and the socket gets exactly
 * the addresses that were checked: a name that resolves differently a moment later changes nothing.
 */
export function guardedConnector(guard: GuardOfOne, resolve: (host: string) => Promise<readonly ResolvedAddress[]>): Connector.connector {
  return (options, callback) => {
    const target = targetOf(options);
    addressesOf(target.host, resolve)
      .then((addresses) => {
        assertAddressesAllowed(guard, target, addresses);
        return buildConnector({
          allowH2: false,
          timeout: CONNECT_TIMEOUT_MS,
          maxCachedSessions: 0,
          lookup: (_host, wanted, answer) => {
            const [first] = addresses;
            if (wanted.all) answer(null, [...addresses]);
            else answer(null, first?.address ?? '', first?.family);
          },
        });
      })
      .then(
        (connect) => connect(options, callback),
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
      );
  };
}

/** The part of the decision that needs no name resolution; `undefined` when the connector has to look further. */
export function isPermittedLiteral(guard: GuardOfOne, url: URL): boolean | undefined {
  const target = targetOf(url);
  return isIP(target.host) === 0 ? undefined : guard.permits(target, target.host);
}

async function addressesOf(
  host: string,
  resolve: (host: string) => Promise<readonly ResolvedAddress[]>,
): Promise<readonly ResolvedAddress[]> {
  const family = isIP(host);
  return family === 0 ? resolve(host) : [{ address: host, family }];
}

/** One bad address among good ones refuses them all: which one is called would be left to chance. */
function assertAddressesAllowed(guard: GuardOfOne, target: Target, addresses: readonly ResolvedAddress[]): void {
  if (addresses.length === 0) {
    const detail = 'DNS: the host name has no address';
    throw new RemoteError('unreachable', `${target.host} has no address.`, { detail });
  }
  const refused = addresses.find(({ address }) => !guard.permits(target, address));
  if (refused === undefined) return;
  throw new RemoteError('refused_address', `${target.host} leads to ${refused.address}, which may not be called.`);
}
