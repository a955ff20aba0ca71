import { z } from 'zod';
import { type EditedKind, resourceOf } from '../../../domain/resources.ts';
import { invalidFields } from '../../../domain/shared/failure.ts';
import { isOlderName } from '../../../domain/shared/older-names.ts';
import { membersOf } from '../../../domain/shared/parse-input.ts';
import type { Route } from '../route.ts';

export type Properties = Readonly<Record<string, unknown>>;

/** Properties of every kind that change by themselves or elsewhere; see `changing` of each kind for more. */
const CHANGING = ['updatedAt', 'tenant.name', 'tenant.description', 'tenant.status', 'warnings'];

/** Names of the properties that responses of a route have and that cannot be written. */
export function readOnlyNames({ body, members = body, responses }: Route): readonly string[] {
  const view = responses[200] ?? responses[201];
  if (members === undefined || !(view instanceof z.ZodObject)) return [];
  const writable = membersOf(members);
  return membersOf(view).filter((name) => !writable.includes(name) && !isOlderName(name, writable));
}

/**
 * Read-only properties may be sent back unchanged, so that a resource can be read, edited and sent. A different value would have no effect,
 * so it is rejected.
 * @param sent the read-only properties of the body.
 * @throws Failure `invalid_input` that lists each property with another value; `not_found` like the change itself.
 */
export async function assertReadOnlyUnchanged(
  { shows, edits }: Route,
  sent: Properties,
  input: Parameters<NonNullable<Route['shows']>>[0],
): Promise<void> {
  const names = Object.keys(sent);
  if (shows === undefined || edits === undefined || names.length === 0) return;
  const answer = await shows(input);
  // Compared in serialized form, without properties that are undefined.
  const current = ('json' in answer ? JSON.parse(JSON.stringify(answer.json)) : {}) as Properties;
  const isKept = comparing(edits.kind);
  const errors = names
    .filter((name) => !isKept(sent[name], current[name], name))
    .map((path) => ({ path, message: 'cannot be changed; remove it, or send it as it was read' }));
  if (errors.length > 0) throw invalidFields(errors);
}

/** Paths contain no positions of lists. */
function comparing(kind: EditedKind) {
  const { volatileProperties: changing = [], entries: separate = {} } = resourceOf(kind);
  const isAlike = (sent: unknown, current: unknown, path: string): boolean => {
    if (CHANGING.includes(path) || changing.includes(path)) return true;
    const id = separate[path];
    if (id !== undefined && isEntries(sent) && isEntries(current)) {
      const find = (name: unknown) => current.find((entry) => entry[id] === name);
      return sent.every((entry) => isRead(entry, find(entry[id]), path));
    }
    if (Array.isArray(sent) && Array.isArray(current)) {
      return sent.length === current.length && sent.every((entry, index) => isAlike(entry, current[index], path));
    }
    if (isObject(sent) && isObject(current)) {
      const names = new Set([...Object.keys(sent), ...Object.keys(current)]);
      return [...names].every((name) => isAlike(sent[name], current[name], `${path}.${name}`));
    }
    return (sent ?? null) === (current ?? null);
  };
  /** An entry counts only if it is as it was read; a changed or removed entry cannot be compared. */
  const isRead = (sent: Properties, current: Properties | undefined, path: string): boolean => {
    const { updatedAt } = sent;
    if (typeof updatedAt !== 'string') return false;
    return updatedAt !== current?.['updatedAt'] || isAlike(sent, current, path);
  };
  return isAlike;
}

function isEntries(value: unknown): value is readonly Properties[] {
  return Array.isArray(value) && value.every(isObject);
}

function isObject(value: unknown): value is Properties {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
