import express, { type NextFunction, type Request, type RequestHandler } from 'express';
import { Failure } from '../../../domain/shared/failure.ts';
import { isText, parseJsonObject } from '../../../domain/shared/json.ts';
import { describeJsonProblem } from '../../../domain/shared/json-fault.ts';
import { decodeUtf8 } from '../../../domain/shared/utf8.ts';
import { type BodyKind, DEFAULT_BODY_LIMIT, type Route } from '../route.ts';

/** Reads at most the route's limit as bytes; compression is refused, since no caller needs it. */
export function bodyReader(route: Route): RequestHandler | undefined {
  if (route.body === undefined) return undefined;
  const limit = route.bodyLimit ?? DEFAULT_BODY_LIMIT;
  const careful = express.raw({ type: () => true, limit, inflate: false });
  return (request, response, next) => {
    if (isPlain(request, limit)) collect(request, next);
    else careful(request, response, next);
  };
}

/** Whether a body is as most are: of a length that is told and taken, and in no encoding. Node sees that it is kept. */
function isPlain({ headers }: Request, limit: number): boolean {
  return (
    headers['content-encoding'] === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers['content-length'] !== undefined &&
    Number(headers['content-length']) <= limit
  );
}

/** What the reader of express does, for a plain body and in a fifth of its time. */
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
    // What still comes is read and let go, so that the answer gets through.
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
 * The body as the route wants it: the members of a JSON object, or the parameters of a form.
 * @param maxMembers members and entries of a JSON object, at all levels.
 * @throws Failure `unsupported_media_type`, or `invalid_request` for what cannot be read.
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
 * RFC 8259 section 8.1, RFC 6749 appendix B: other encodings would have other names of people signed.
 * @throws Failure `unsupported_media_type`, `invalid_input`.
 */
function readText(bytes: unknown, contentType: string | undefined): string {
  const [, charset] = CHARSET.exec(contentType ?? '') ?? [];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') throw new Failure('unsupported_media_type', 'send the body in UTF-8');
  const text = Buffer.isBuffer(bytes) ? decodeUtf8(bytes) : '';
  if (text === undefined) throw new Failure('invalid_input', 'the body is not UTF-8');
  return text;
}

/** Forms come from callers who have shown nothing yet, so these are looked at before anything is taken apart. */
const MAX_PARAMETERS = 100;
/** Of a form. A megabyte of them takes forty milliseconds to read; presentations are base64url, which has none. */
const MAX_ESCAPES = 50_000;
const ESCAPE = /[+%]/g;

/**
 * The parameters of a form. A repeated one is an error, whether or not it is empty; an empty one counts as absent (RFC 6749 section 3.2).
 * @throws Failure `invalid_request`.
 */
export function readForm(text: string): Record<string, string> {
  assertModest(text);
  const form: Record<string, string> = Object.create(null);
  const names = new Set<string>();
  for (const [name, value] of new URLSearchParams(text)) {
    // Of two readers one would see the empty one, and the other the one that says something.
    if (names.has(name)) throw new Failure('invalid_request', 'a parameter was sent more than once');
    names.add(name);
    // What stands in place of bytes that are not UTF-8.
    if (value.includes('\uFFFD')) throw new Failure('invalid_request', 'a parameter is not UTF-8');
    if (!isText(value)) throw new Failure('invalid_request', 'a parameter contains NUL');
    if (value !== '') form[name] = value;
  }
  return form;
}

function assertModest(text: string): void {
  if (holdsMore(text, /&/g, MAX_PARAMETERS - 1)) throw new Failure('invalid_request', `a form has at most ${MAX_PARAMETERS} parameters`);
  if (holdsMore(text, ESCAPE, MAX_ESCAPES)) throw new Failure('invalid_request', `a form has at most ${MAX_ESCAPES} characters as escapes`);
}

/** @param mark global, so that each test goes on behind the one before. */
function holdsMore(text: string, mark: RegExp, limit: number): boolean {
  mark.lastIndex = 0;
  let count = 0;
  while (count <= limit && mark.test(text)) count++;
  return count > limit;
}
