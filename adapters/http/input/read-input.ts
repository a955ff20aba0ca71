import type { Request } from 'express';
import { z } from 'zod';
import { Failure, type FieldError, invalidFields, messageOf } from '../../../domain/shared/failure.ts';
import { fieldErrors, PARSING } from '../../../domain/shared/field-errors.ts';
import { isText, MAX_STRANGER_MEMBERS } from '../../../domain/shared/json.ts';
import { pathAsWritten, withCurrentNames } from '../../../domain/shared/older-names.ts';
import { membersOf, parseWritten, safeParseWritten } from '../../../domain/shared/parse-written.ts';
import type { Route } from '../route.ts';
import { readBody } from './read-body.ts';
import { type Members, readOnlyNames } from './read-only-members.ts';

type Asked = {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  /** Members of the body that cannot be written, as they were sent. */
  readonly readOnly: Members;
  /** The body as it was sent, where people write it. */
  readonly written?: Members;
};

/** What a request asks for. @throws Failure `invalid_input` that names every fault of one part. */
export function readInput(route: Route, request: Request): Asked {
  return {
    params: parse(route.params, { ...request.params }, 'path'),
    query: parseQuery(route, queryOf(request)),
    ...readRouteBody(route, request),
  };
}

/** Of a document of an administrator: each small change of it looks at all of them. */
const MAX_MEMBERS = 10_000;

const NO_QUERY = z.object({});

/** Express takes the address apart each time it is asked, and most have no query. */
function queryOf(request: Request): object {
  return request.url.includes('?') ? { ...request.query } : {};
}

function parseQuery(route: Route, value: object): unknown {
  const { query: schema } = route;
  if (!isStrict(route)) return parse(schema, value, 'query');
  assertText(value, 'query');
  const read = safeParseWritten(schema ?? NO_QUERY, value);
  if ('errors' in read) throw invalidFields(within('query', read.errors));
  return schema && read.data;
}

/** Protocols have their unknown parameters ignored (RFC 6749 section 3.1); our own API has not. */
function isStrict({ surface, access }: Route): boolean {
  return surface === 'admin' && access !== 'public';
}

function readRouteBody(route: Route, request: Request): Pick<Asked, 'body' | 'readOnly' | 'written'> {
  const { access, body: schema, bodyKind = 'json', members = schema } = route;
  if (schema === undefined || members === undefined || bodyKind === 'unread') return { body: undefined, readOnly: {} };
  const maxMembers = typeof access === 'string' ? MAX_STRANGER_MEMBERS : MAX_MEMBERS;
  const type = request.headers['content-type'];
  const value = readBody(bodyKind, type, request.body, maxMembers) as Members;
  if (!isStrict(route)) return { body: parse(schema, value), readOnly: {} };
  const names = readOnlyNames(route);
  const entries = Object.entries(value);
  const readOnly = Object.fromEntries(entries.filter(([name]) => names.includes(name)));
  const written = Object.fromEntries(entries.filter(([name]) => !names.includes(name)));
  try {
    const body = parseWritten(members, written);
    const read = members === schema ? body : withCurrentNames(written, membersOf(members)).value;
    return { body: read, readOnly, written };
  } catch (error) {
    throw inWrittenNames(error, written);
  }
}

/** A failure by the names that its caller wrote, which may be the older ones. */
export function inWrittenNames(error: unknown, written: Members | undefined): unknown {
  if (!(error instanceof Failure) || error.details.errors === undefined) return error;
  const errors = error.details.errors.map((fault) => ({ ...fault, path: pathAsWritten(fault.path, written) }));
  const [was, is] = [error.details.errors[0]?.path ?? '', errors[0]?.path ?? ''];
  if (errors.every(({ path }, index) => path === error.details.errors?.[index]?.path)) return error;
  const { message = '' } = error.details;
  const ofFirst = message.startsWith(`${was}: `) ? is + message.slice(was.length) : message;
  const told = message === messageOf(error.details.errors) ? messageOf(errors) : ofFirst;
  return new Failure(error.code, { ...error.details, message: told, errors }, { cause: error.cause });
}

function parse(schema: z.ZodType | undefined, value: unknown, place?: string): unknown {
  if (schema === undefined) return undefined;
  if (place !== undefined) assertText(value, place);
  const parsed = schema.safeParse(value, PARSING);
  if (parsed.success) return parsed.data;
  throw invalidFields(within(place, fieldErrors(parsed.error.issues, value)));
}

function within(place: string | undefined, errors: readonly FieldError[]) {
  return errors.map(({ path, message }) => ({
    path: [place, path].filter((part) => part !== undefined && part !== '').join('.'),
    message,
  }));
}

/** Nothing is called by a name with NUL, and databases do not even want to hear it. */
function assertText(parameters: unknown, place: string): void {
  const isFit = Object.values(parameters as object)
    .flat()
    .every((value) => typeof value !== 'string' || isText(value));
  if (isFit) return;
  if (place === 'path') throw new Failure('not_found', 'unknown address');
  throw new Failure('invalid_input', 'a parameter contains NUL');
}
