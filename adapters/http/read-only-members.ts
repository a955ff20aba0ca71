import type { FieldError } from '../../domain/shared/failure.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Route } from './route.ts';
import { readOnlyMembers } from './unknown-members.ts';

/**
 * What the service changes by itself, or others change elsewhere: whoever sends back what they read may have read
 * something else than what stands there by now. Lists do not count in the paths.
 */
const SHIFTING: ReadonlySet<string> = new Set([
  ...['updatedAt', 'tenant.name', 'clients.updatedAt', 'clients.tenant.name', 'clients.secret'],
  // of status lists
  ...['usedEntries', 'availableEntries', 'expiresAt'],
  // of key chains and certificates, which are renewed
  ...['activeKey', 'activeCertificate', 'activeCertificateExpiry', 'lastRotatedAt', 'key'],
  ...['previousKey', 'previousCertificate', 'previousKeyExpiry', 'previousKeys'],
  // of trust lists, which are signed anew
  ...['cert', 'sequenceNumber', 'jwt'],
]);

/**
 * Lists whose entries come, change and go by themselves, by what tells the entries apart. An entry counts only as long
 * as it is what was read.
 */
const SEPARATE: Readonly<Record<string, string>> = { clients: 'clientId' };

/**
 * Members that answers have and that cannot be written may be sent back as they were read, so that what was read can be
 * changed and sent. Whoever sends another value wants something that does not happen, and is told so.
 * @param routes of which those that change a thing look at the one that shows it, under the same address.
 * @returns the same routes; those that change things refuse with `invalid_input`.
 */
export function keepReadOnly(routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => {
    const { method, path, surface } = route;
    if (surface !== 'admin' || (method !== 'patch' && method !== 'put')) return route;
    const reading = routes.find((other) => other.method === 'get' && other.path === path);
    return reading === undefined ? route : guarded(route, reading);
  });
}

function guarded(route: Route, reading: Route): Route {
  const { body, members = body, responses } = route;
  const view = responses[200];
  if (members === undefined || view === undefined || typeof view === 'string') return route;
  return {
    ...route,
    async handle(input) {
      // Read once already; nothing at all counts as no members.
      const text = input.request.bytes.toString('utf8');
      const sent = JSON.parse(text === '' ? '{}' : text) as Members;
      const names = readOnlyMembers(members, sent, view);
      if (names.length > 0) assertKept(names, sent, await shownBy(reading, input));
      return route.handle(input);
    },
  };
}

/** @throws Failure `not_found`, as the change itself would. */
async function shownBy(reading: Route, input: Parameters<Route['handle']>[0]): Promise<Members> {
  const answer = await reading.handle(input);
  // As it is sent: without members that are undefined.
  return 'json' in answer ? (JSON.parse(JSON.stringify(answer.json)) as Members) : {};
}

type Members = Readonly<Record<string, unknown>>;

/** @throws Failure `invalid_input` that names each member with another value. */
function assertKept(names: readonly string[], sent: Members, shown: Members): void {
  const errors: FieldError[] = names
    .filter((name) => !isAlike(sent[name], shown[name], name))
    .map((path) => ({ path, message: 'cannot be changed; leave it out, or send it as it was read' }));
  const [first] = errors;
  if (first === undefined) return;
  throw new Failure('invalid_input', { message: `${first.path}: ${first.message}`, errors });
}

function isAlike(sent: unknown, shown: unknown, path: string): boolean {
  if (SHIFTING.has(path)) return true;
  const id = SEPARATE[path];
  if (id !== undefined && isEntries(sent) && isEntries(shown)) {
    return sent.every((entry) =>
      isRead(
        entry,
        shown.find((other) => other[id] === entry[id]),
        path,
      ),
    );
  }
  if (Array.isArray(sent) && Array.isArray(shown)) {
    return sent.length === shown.length && sent.every((entry, index) => isAlike(entry, shown[index], path));
  }
  if (isObject(sent) && isObject(shown)) {
    const names = new Set([...Object.keys(sent), ...Object.keys(shown)]);
    return [...names].every((name) => isAlike(sent[name], shown[name], `${path}.${name}`));
  }
  return (sent ?? null) === (shown ?? null);
}

/** Whether a separate entry was left as it was read, as far as can be told once it is another one, or gone. */
function isRead(sent: Members, shown: Members | undefined, path: string): boolean {
  const { updatedAt } = sent;
  if (typeof updatedAt !== 'string') return false;
  return updatedAt !== shown?.['updatedAt'] || isAlike(sent, shown, path);
}

function isEntries(value: unknown): value is readonly Members[] {
  return Array.isArray(value) && value.every(isObject);
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
