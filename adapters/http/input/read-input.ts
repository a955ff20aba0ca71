import type { Request } from 'express';
import { z } from 'zod';
import { Failure, type FieldError, invalidFields, messageOf } from '../../../domain/shared/failure.ts';
import { fieldErrors, PARSE_OPTIONS } from '../../../domain/shared/field-errors.ts';
import { isText, MAX_UNTRUSTED_PROPERTIES } from '../../../domain/shared/json.ts';
import { pathAsWritten, withCurrentNames } from '../../../domain/shared/older-names.ts';
import { membersOf, parseInput, safeParseInput } from '../../../domain/shared/parse-input.ts';
import type { Route } from '../route.ts';
import { readBody } from './read-body.ts';
import { type Properties, readOnlyNames } from './read-only-properties.ts';

type ParsedInput = {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  /** Read-only properties of the body, unchanged. */
  readonly readOnly: Properties;
  /** The body without its read-only properties, unchanged, for documents of administrators. */
  readonly originalBody?: Properties;
};

/** Parses the parts of a request. @throws Failure `invalid_input` that lists every error of one part. */
export function readInput(route: Route, request: Request): ParsedInput {
  return {
    params: parse(route.params, { ...request.params }, 'path'),
    query: parseQuery(route, queryOf(request)),
    ...readRouteBody(route, request),
  };
}

/** Limit of properties in a document of an administrator, because each small change of the document validates all of it. */
const MAX_PROPERTIES = 10_000;

const NO_QUERY = z.object({});

/** Express parses the query at each access, so it is only accessed if the address has one. */
function queryOf(request: Request): object {
  return request.url.includes('?') ? { ...request.query } : {};
}

function parseQuery(route: Route, value: object): unknown {
  const { query: schema } = route;
  if (!isStrict(route)) return parse(schema, value, 'query');
  assertText(value, 'query');
  const parsed = safeParseInput(schema ?? NO_QUERY, value);
  if ('errors' in parsed) throw invalidFields(prefixPaths('query', parsed.errors));
  return schema && parsed.data;
}

/** Protocols ignore unknown parameters (RFC 6749 section 3.1); the administrative interface rejects them. */
function isStrict({ surface, access }: Route): boolean {
  return surface === 'admin' && access !== 'public';
}

function readRouteBody(route: Route, request: Request): Pick<ParsedInput, 'body' | 'readOnly' | 'originalBody'> {
  const { access, body: schema, bodyKind = 'json', members = schema } = route;
  if (schema === undefined || members === undefined || bodyKind === 'unread') return { body: undefined, readOnly: {} };
  const maxProperties = typeof access === 'string' ? MAX_UNTRUSTED_PROPERTIES : MAX_PROPERTIES;
  const type = request.headers['content-type'];
  const value = readBody(bodyKind, type, request.body, maxProperties) as Properties;
  if (!isStrict(route)) return { body: parse(schema, value), readOnly: {} };
  const names = readOnlyNames(route);
  const entries = Object.entries(value);
  const readOnly = Object.fromEntries(entries.filter(([name]) => names.includes(name)));
  const originalBody = Object.fromEntries(entries.filter(([name]) => !names.includes(name)));
  try {
    const body = parseInput(members, originalBody);
    const currentBody = members === schema ? body : withCurrentNames(originalBody, membersOf(members)).value;
    return { body: currentBody, readOnly, originalBody };
  } catch (error) {
    throw inWrittenNames(error, originalBody);
  }
}

/** Replaces the property names of a failure by those that the caller wrote, which may be older ones. */
export function inWrittenNames(error: unknown, originalBody: Properties | undefined): unknown {
  if (!(error instanceof Failure) || error.details.errors === undefined) return error;
  const errors = error.details.errors.map((fault) => ({ ...fault, path: pathAsWritten(fault.path, originalBody) }));
  const [originalPath, writtenPath] = [error.details.errors[0]?.path ?? '', errors[0]?.path ?? ''];
  if (errors.every(({ path }, index) => path === error.details.errors?.[index]?.path)) return error;
  const { message = '' } = error.details;
  const renamedMessage = message.startsWith(`${originalPath}: `) ? writtenPath + message.slice(originalPath.length) : message;
  const writtenMessage = message === messageOf(error.details.errors) ? messageOf(errors) : renamedMessage;
  return new Failure(error.code, { ...error.details, message: writtenMessage, errors }, { cause: error.cause });
}

function parse(schema: z.ZodType | undefined, value: unknown, location?: string): unknown {
  if (schema === undefined) return undefined;
  if (location !== undefined) assertText(value, location);
  const parsed = schema.safeParse(value, PARSE_OPTIONS);
  if (parsed.success) return parsed.data;
  throw invalidFields(prefixPaths(location, fieldErrors(parsed.error.issues, value)));
}

function prefixPaths(location: string | undefined, errors: readonly FieldError[]) {
  return errors.map(({ path, message }) => ({
    path: [location, path].filter((part) => part !== undefined && part !== '').join('.'),
    message,
  }));
}

/** Rejects texts with NUL, which databases cannot store; no resource has such a name. */
function assertText(parameters: unknown, location: string): void {
  const isValid = Object.values(parameters as object)
    .flat()
    .every((value) => typeof value !== 'string' || isText(value));
  if (isValid) return;
  if (location === 'path') throw new Failure('not_found', 'unknown address');
  throw new Failure('invalid_input', 'The query contains a NUL character (U+0000). Remove it.');
}
