import { isIP } from 'node:net';
import type { buildConnector as Connector } from 'undici';
import { RemoteError } from '../../application/ports/remote.ts';
import { type Target, type TenantAddressGuard, targetOf } from './address-guard.ts';
import type { ResolvedAddress } from './name-resolver.ts';
import { buildConnector } from './undici-parts.ts';

const CONNECT_TIMEOUT_MS = 5000;

/**
 * Connects only to addresses that the guard allows. The check follows the name resolution, and the socket gets exactly the checked
 * addresses: a name that resolves differently a moment later changes nothing.
 */
export function guardedConnector(
  guard: TenantAddressGuard,
  resolve: (host: string) => Promise<readonly ResolvedAddress[]>,
): Connector.connector {
  return (options, callback) => {
    const target = targetOf(options);
    addressesOf(target.host, resolve)
      .then((addresses) => {
        assertAddressesAllowed(guard, target, addresses);
        return buildConnector({
          allowH2: false,
          timeout: CONNECT_TIMEOUT_MS,
          maxCachedSessions: 0,
          lookup: (_host, lookupOptions, answer) => {
            const [firstAddress] = addresses;
            if (lookupOptions.all) answer(null, [...addresses]);
            else answer(null, firstAddress?.address ?? '', firstAddress?.family);
          },
        });
      })
      .then(
        (connect) => connect(options, callback),
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
      );
  };
}

/** Decision that needs no name resolution; `undefined` if the connector has to resolve the name. */
export function isPermittedLiteral(guard: TenantAddressGuard, url: URL): boolean | undefined {
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

/** One rejected address rejects them all: the choice among them would be left to chance. */
function assertAddressesAllowed(guard: TenantAddressGuard, target: Target, addresses: readonly ResolvedAddress[]): void {
  if (addresses.length === 0) {
    const detail = 'DNS: the host name has no address';
    throw new RemoteError('unreachable', `${target.host} has no address.`, { detail });
  }
  const rejected = addresses.find(({ address }) => !guard.permits(target, address));
  if (rejected === undefined) return;
  throw new RemoteError('refused_address', `${target.host} resolves to ${rejected.address}, which is a blocked address.`);
}
