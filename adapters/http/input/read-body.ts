import express, { type NextFunction, type Request, type RequestHandler } from 'express';
import { Failure } from '../../../domain/shared/failure.ts';
import { isText, parseJsonObject } from '../../../domain/shared/json.ts';
import { describeJsonProblem } from '../../../domain/shared/json-fault.ts';
import { decodeUtf8 } from '../../../domain/shared/utf8.ts';
import { type BodyKind, DEFAULT_BODY_LIMIT, type Route } from '../route.ts';

/** Reads at most the route's limit as bytes; compressed bodies are rejected, because no caller needs them. */
export function bodyReader(route: Route): RequestHandler | undefined {
  if (route.body === undefined) return undefined;
  const limit = route.bodyLimit ?? DEFAULT_BODY_LIMIT;
  const careful = express.raw({ type: () => true, limit, inflate: false });
  return (request, response, next) => {
    if (isPlain(request, limit)) collect(request, next);
    else careful(request, response, next);
  };
}

/** Returns true for an ordinary body: of a stated length within the limit, and in no encoding. Node enforces the length. */
function isPlain({ headers }: Request, limit: number): boolean {
  return (
    headers['content-encoding'] === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers['content-length'] !== undefined &&
    Number(headers['content-length']) <= limit
  );
}

/** Reads a plain body like the reader of express, in a fifth of its time. */
function collect(request: Request, next: NextFunction): void {
  const chunks: Buffer[] = [];
  const keep = (chunk: Buffer) => chunks.push(chunk);
  const done = (error?: unknown) => {
    request.off('data', keep).off('end', end).off('error', fail).off('aborted', abort);
    next(error);
  };
  const end = () => {
    request.body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    done();
  };
  const fail = (error: unknown) => {
    // The remaining data is read and discarded, so that the response gets through.
    request.resume();
    done(error);
  };
  const abort = () => done(Object.assign(new Error('the request was aborted'), { type: 'request.aborted' }));
  request.on('data', keep).once('end', end).once('error', fail).once('aborted', abort);
}

const FORM = 'application/x-www-form-urlencoded';
const MEDIA_TYPES: Readonly<Record<BodyKind, string>> = {
  json: 'application/json',
  form: FORM,
  'json-or-form': `application/json or ${FORM}`,
  unread: 'application/json or application/jwt',
};

/**
 * Parses the body as the route requires: the properties of a JSON object, or the parameters of a form.
 * @param maxMembers limit of properties and elements of a JSON object, at all levels.
 * @throws Failure `unsupported_media_type`, or `invalid_request` for a malformed body.
 */
export function readBody(kind: BodyKind, contentType: string | undefined, bytes: unknown, maxMembers: number): unknown {
  const text = readText(bytes, contentType);
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (text === '' && type === undefined) return {};
  if (kind !== 'form' && (type === 'application/json' || type?.endsWith('+json'))) {
    const body = parseJsonObject(text, undefined, maxMembers);
    if (body !== undefined) return body;
    const message = text === '' ? 'the body is empty; send a JSON object' : `the body ${describeJsonProblem(text, maxMembers)}`;
    throw new Failure('invalid_input', { message, errors: [{ path: '', message }] });
  }
  if (kind !== 'json' && type === FORM) return readForm(text);
  throw new Failure('unsupported_media_type', `send the body as ${MEDIA_TYPES[kind]}`);
}

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * Decodes UTF-8 only (RFC 8259 section 8.1, RFC 6749 appendix B): in other encodings, names of persons would be signed with wrong
 * characters.
 * @throws Failure `unsupported_media_type`, `invalid_input`.
 */
function readText(bytes: unknown, contentType: string | undefined): string {
  const [, charset] = CHARSET.exec(contentType ?? '') ?? [];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') throw new Failure('unsupported_media_type', 'send the body in UTF-8');
  const text = Buffer.isBuffer(bytes) ? decodeUtf8(bytes) : '';
  if (text === undefined) throw new Failure('invalid_input', 'the body is not UTF-8');
  return text;
}

/** Forms come from unauthenticated callers, so their size is checked before they are parsed. */
const MAX_PARAMETERS = 100;
/** Limit of escapes in a form. A megabyte of them takes forty milliseconds to decode; presentations are base64url, which has none. */
const MAX_ESCAPES = 50_000;
const ESCAPE = /[+%]/g;

/**
 * Parses the parameters of a form. A repeated parameter is an error, even if it is empty; an empty one counts as absent (RFC 6749 section
 * 3.2).
 * @throws Failure `invalid_request`.
 */
export function readForm(text: string): Record<string, string> {
  assertFormSize(text);
  const form: Record<string, string> = Object.create(null);
  const names = new Set<string>();
  for (const [name, value] of new URLSearchParams(text)) {
    // Two parsers could disagree on which of the repeated values counts.
    if (names.has(name)) throw new Failure('invalid_request', 'a parameter was sent more than once');
    names.add(name);
    // The replacement character stands for bytes that are not UTF-8.
    if (value.includes('\uFFFD')) throw new Failure('invalid_request', 'a parameter is not UTF-8');
    if (!isText(value)) throw new Failure('invalid_request', 'The form contains a NUL character (U+0000). Remove it.');
    if (value !== '') form[name] = value;
  }
  return form;
}

function assertFormSize(text: string): void {
  if (hasMoreThan(text, /&/g, MAX_PARAMETERS - 1)) throw new Failure('invalid_request', `a form has at most ${MAX_PARAMETERS} parameters`);
  if (hasMoreThan(text, ESCAPE, MAX_ESCAPES))
    throw new Failure('invalid_request', `a form has at most ${MAX_ESCAPES} characters as escapes`);
}

/** @param mark global, so that each test continues behind the previous match. */
function hasMoreThan(text: string, mark: RegExp, limit: number): boolean {
  mark.lastIndex = 0;
  let count = 0;
  while (count <= limit && mark.test(text)) count++;
  return count > limit;
}
