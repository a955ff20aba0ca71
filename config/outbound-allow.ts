import { isIP } from 'node:net';
import { isNetwork, list } from './setting-values.ts';

const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;
const PLACE = /^(?<host>\[[0-9a-f:.]+\]|[^[\]:\s/]+)(?::(?<port>\d{1,5}))?$/;
const LABEL = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?$/;

/** Hosts and networks, each for all tenants or for one: `backend.example`, `acme=10.0.0.0/8`. */
export const outboundAllow = list.transform((entries, context): readonly string[] => {
  for (const entry of entries) {
    const fault = faultOf(entry);
    if (fault !== undefined) context.addIssue(`"${entry}" ${fault}`);
  }
  return entries;
});

function faultOf(entry: string): string | undefined {
  const split = entry.indexOf('=');
  if (split >= 0 && !TENANT.test(entry.slice(0, split).trim())) {
    return 'names no tenant before the =; an entry for one tenant is written <tenant>=<host>';
  }
  const place = entry
    .slice(split + 1)
    .trim()
    .toLowerCase();
  if (place.includes('/') ? isNetwork(place) : isIP(place) !== 0 || isPlace(place)) return undefined;
  return (
    'is neither a host (backend.example, *.example) nor a network (10.0.0.0/8) nor an address, each host or address ' +
    'also with a port (127.0.0.1:8080), and each also for one tenant (acme=backend.example)'
  );
}

function isPlace(place: string): boolean {
  const { host = '', port = '1' } = PLACE.exec(place)?.groups ?? {};
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  if (host.startsWith('[')) return isIP(host.slice(1, -1)) === 6;
  if (isIP(host) === 4) return true;
  const labels = host.replace(/^\*\./, '').split('.');
  // A last label of digits only would be read as a number by the parser of addresses and never match.
  return labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '');
}
