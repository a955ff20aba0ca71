import { z } from 'zod';
import { type EditedKind, resourceOf } from '../../../domain/resources.ts';
import { invalidFields } from '../../../domain/shared/failure.ts';
import { isOlderName } from '../../../domain/shared/older-names.ts';
import { membersOf } from '../../../domain/shared/parse-written.ts';
import type { Route } from '../route.ts';

export type Members = Readonly<Record<string, unknown>>;

/** What the service changes by itself, or others change elsewhere, of every kind; see `changing` of each. */
const CHANGING = ['updatedAt', 'tenant.name', 'tenant.description', 'tenant.status', 'warnings'];

/** The members that answers of a route have and that cannot be written. */
export function readOnlyNames({ body, members = body, responses }: Route): readonly string[] {
  const view = responses[200] ?? responses[201];
  if (members === undefined || !(view instanceof z.ZodObject)) return [];
  const known = membersOf(members);
  return membersOf(view).filter((name) => !known.includes(name) && !isOlderName(name, known));
}

/**
 * Members that answers have and that cannot be written may be sent back as they were read, so that what was read can be
 * changed and sent. Somebody who sends another value wants something that does not happen, and is told so.
 * @param sent of these members.
 * @throws Failure `invalid_input` that names each member with another value; `not_found`, as the change itself would.
 */
export async function assertKept({ shows, edits }: Route, sent: Members, input: Parameters<NonNullable<Route['shows']>>[0]): Promise<void> {
  const names = Object.keys(sent);
  if (shows === undefined || edits === undefined || names.length === 0) return;
  const answer = await shows(input);
  // As it is sent: without members that are undefined.
  const shown = ('json' in answer ? JSON.parse(JSON.stringify(answer.json)) : {}) as Members;
  const isKept = comparing(edits.kind);
  const errors = names
    .filter((name) => !isKept(sent[name], shown[name], name))
    .map((path) => ({ path, message: 'cannot be changed; leave it out, or send it as it was read' }));
  if (errors.length > 0) throw invalidFields(errors);
}

/** Lists do not count in the paths. */
function comparing(kind: EditedKind) {
  const { changing = [], entries: separate = {} } = resourceOf(kind);
  const isAlike = (sent: unknown, shown: unknown, path: string): boolean => {
    if (CHANGING.includes(path) || changing.includes(path)) return true;
    const id = separate[path];
    if (id !== undefined && isEntries(sent) && isEntries(shown)) {
      const find = (name: unknown) => shown.find((other) => other[id] === name);
      return sent.every((entry) => isRead(entry, find(entry[id]), path));
    }
    if (Array.isArray(sent) && Array.isArray(shown)) {
      return sent.length === shown.length && sent.every((entry, index) => isAlike(entry, shown[index], path));
    }
    if (isObject(sent) && isObject(shown)) {
      const names = new Set([...Object.keys(sent), ...Object.keys(shown)]);
      return [...names].every((name) => isAlike(sent[name], shown[name], `${path}.${name}`));
    }
    return (sent ?? null) === (shown ?? null);
  };
  /** An entry counts only as long as it is what was read, as far as can be told once it is another one, or gone. */
  const isRead = (sent: Members, shown: Members | undefined, path: string): boolean => {
    const { updatedAt } = sent;
    if (typeof updatedAt !== 'string') return false;
    return updatedAt !== shown?.['updatedAt'] || isAlike(sent, shown, path);
  };
  return isAlike;
}

function isEntries(value: unknown): value is readonly Members[] {
  return Array.isArray(value) && value.every(isObject);
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
