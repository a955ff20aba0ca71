import type { Route } from './route.ts';

/** What people read first stands first: how to get in, then what they came for. */
const TAGS: Readonly<Record<string, string>> = {
  Authentication: 'Access tokens for everything that administrators and backends call',
  Tenants: 'Who issues and verifies; each has its own keys, configurations and sessions',
  Issuer: 'What is issued, and offers of it',
  Verifier: 'What is asked for, and requests for it',
  Sessions: 'One for each offer and each presentation request: how it stands, and what came of it',
  Clients: 'Programs and people that call this interface, with their roles',
  Keys: 'Key chains: keys with the certificates that say whose they are',
  'Status lists': 'Where credentials are revoked and suspended',
  'Trust lists': 'Whom a tenant vouches for',
  Registrar: 'Certificates that a registrar gives to relying parties',
  Webhooks: 'What this service calls, and how its calls are signed',
  'Webhook calls': 'Requests that this service sends to a backend',
  Caches: 'What is remembered of lists of others',
  'Audit log': 'Who changed what',
  'Pages for users': 'What users see in their browsers, besides the pages of the flows of wallets',
  Service: 'The service itself, and this description',
};

/** What wallets call, after all others. */
const OF_WALLETS = 'Wallet: ';

/** The routes by their tags, in the order in which people need them. */
export function inOrder(routes: readonly Route[]): readonly Route[] {
  const names = Object.keys(TAGS);
  const place = ({ tag }: Route) => (names.includes(tag) ? names.indexOf(tag) : names.length);
  return routes.toSorted((one, other) => place(one) - place(other));
}

export function tagsOf(routes: readonly Route[]): { name: string; description?: string }[] {
  const wallets = routes.map(({ tag }) => tag).filter((tag) => tag.startsWith(OF_WALLETS));
  const named = Object.entries(TAGS).map(([name, description]) => ({ name, description }));
  return [...named, ...[...new Set(wallets)].map((name) => ({ name }))];
}
