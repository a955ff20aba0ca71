import express, { type RequestHandler } from 'express';
import { Failure } from '../../domain/shared/failure.ts';
import { isText, parseJsonObject } from '../../domain/shared/json.ts';
import { type BodyKind, DEFAULT_BODY_LIMIT, type Route } from './route.ts';

/** Reads at most the route's limit as bytes; compression is refused, since no caller needs it. */
export function bodyReader(route: Route): RequestHandler | undefined {
  if (route.body === undefined) return undefined;
  return express.raw({ type: () => true, limit: route.bodyLimit ?? DEFAULT_BODY_LIMIT, inflate: false });
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
 * @throws Failure `unsupported_media_type`, or `invalid_request` for what cannot be read.
 */
export function readBody(kind: BodyKind, contentType: string | undefined, bytes: unknown): unknown {
  const text = Buffer.isBuffer(bytes) ? bytes.toString('utf8') : '';
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (text === '' && type === undefined) return {};
  if (kind !== 'form' && (type === 'application/json' || type?.endsWith('+json'))) {
    const body = parseJsonObject(text);
    if (body !== undefined) return body;
    const message =
      text === ''
        ? 'the body is empty; send a JSON object'
        : 'the body must be one whole JSON object: without repeated members, `__proto__` or NUL, at most 32 levels deep';
    throw new Failure('invalid_input', { message, errors: [{ path: '', message }] });
  }
  if (kind !== 'json' && type === FORM) return readForm(text);
  throw new Failure('unsupported_media_type', `send the body as ${MEDIA_TYPES[kind]}`);
}

/** RFC 6749 section 3.2: a repeated parameter is an error, an empty one counts as absent. */
function readForm(text: string): Record<string, string> {
  const form: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(form, name)) {
      throw new Failure('invalid_request', 'a parameter was sent more than once');
    }
    if (!isText(value)) throw new Failure('invalid_request', 'a parameter contains NUL');
    if (value !== '') form[name] = value;
  }
  return form;
}
