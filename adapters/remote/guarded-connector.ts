import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import { RemoteError } from '../../application/ports/remote.ts';
import type { AddressGuard } from './address-guard.ts';

/** @returns every address of a host name. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const CONNECT_TIMEOUT_MS = 5000;

export const systemResolve: Resolve = (host) => lookup(host, { all: true });

/**
 * Connects only where the guard lets it. The check stands here, behind name resolution, and the socket gets exactly
 * the addresses that were checked: a name that resolves differently a moment later changes nothing.
 */
export function guardedConnector(guard: AddressGuard, resolve: Resolve): buildConnector.connector {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    addressesOf(host, resolve)
      .then((addresses) => {
        checkAddresses(guard, { host, port, protocol: options.protocol }, addresses);
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
export function isPermittedLiteral(guard: AddressGuard, url: URL): boolean | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return undefined;
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return isPermitted(guard, { host, port, protocol: url.protocol }, host);
}

async function addressesOf(host: string, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  return family === 0 ? resolve(host) : [{ address: host, family }];
}

type Target = { readonly host: string; readonly port: number; readonly protocol: string };

/** One bad address among good ones refuses them all: which one is called would be left to chance. */
function checkAddresses(guard: AddressGuard, target: Target, addresses: readonly LookupAddress[]): void {
  if (addresses.length === 0) throw new RemoteError('unreachable', `${target.host} has no address.`);
  const refused = addresses.find(({ address }) => !isPermitted(guard, target, address));
  if (refused === undefined) return;
  throw new RemoteError(
    'refused_address',
    `${target.host} leads to ${refused.address}, which may not be called.`,
  );
}

function isPermitted(guard: AddressGuard, { host, port, protocol }: Target, address: string): boolean {
  if (guard.isListedHost(host, port) || guard.isListedAddress(address, port)) return true;
  return protocol === 'https:' && guard.isPublic(address);
}
