import { z } from 'zod';
import {
  type CreateDocumentOptions,
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { isWritten } from '../../domain/shared/written.ts';
import { WEBHOOKS } from './openapi-webhooks.ts';
import type { Access, Route, Surface } from './route.ts';
import { ProtocolError } from './shapes/protocol-error.ts';

export type OpenApiSettings = { readonly publicUrl: string; readonly version: string };

type Responses = ZodOpenApiOperationObject['responses'];

/** RFC 9457 */
const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.string().describe('What happened, for programs'),
    requestId: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' });

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Accepted; not ready yet',
  204: 'Done, without content',
  400: 'The request is not valid',
  401: 'No valid access token',
  403: 'The role or a restriction does not allow it',
  404: 'Not found',
  406: 'No acceptable form',
  409: 'Conflict, also with what `If-Match` expects',
  410: 'No longer available',
  413: 'The body is too large',
  415: 'The body is of another media type, or of another encoding',
  429: 'Too many calls; `Retry-After` says when to come back',
  500: 'Something failed here; nothing has changed',
  503: 'Temporarily unavailable; `Retry-After` may say when to come back',
};

/**
 * Answers reuse input schemas, and some of those brand or rename what they read. What goes out looks like what
 * came in, so it is described by the kind of its input.
 */
const OPTIONS: CreateDocumentOptions = {
  allowEmptySchema: { pipe: { output: true }, transform: true, custom: true },
  override({ zodSchema, jsonSchema, io }) {
    // What was read may be sent back, and has more members than can be written.
    if (io === 'input' && zodSchema instanceof z.ZodObject) {
      if (isWritten(zodSchema)) delete jsonSchema.additionalProperties;
      // One that is described anew refers to what it was made of, and repeats this.
      for (const member of Object.values(jsonSchema.properties ?? {})) {
        if (typeof member === 'object' && member.$ref !== undefined) delete member.additionalProperties;
      }
    }
    if (io !== 'output' || !(zodSchema instanceof z.ZodPipe)) return;
    if (!(zodSchema.out instanceof z.ZodTransform) || Object.keys(jsonSchema).length > 0) return;
    if (zodSchema.in instanceof z.ZodRecord || zodSchema.in instanceof z.ZodObject)
      jsonSchema.type = 'object';
    if (zodSchema.in instanceof z.ZodString) jsonSchema.type = 'string';
    if (zodSchema.in instanceof z.ZodArray) jsonSchema.type = 'array';
  },
};

const COMPACT = { type: 'string' as const, description: 'A JWS or JWE in compact form' };

/** Describes the route table (OpenAPI 3.1). Schemas with an id become components. */
export function buildOpenApi(routes: readonly Route[], settings: OpenApiSettings): object {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operation(route) };
  }
  const document = {
    openapi: '3.1.0' as const,
    info: {
      title: 'Vidimus',
      version: settings.version,
      description:
        'Issues digital credentials to wallets and verifies what wallets present, for many tenants.',
    },
    servers: [{ url: settings.publicUrl }],
    tags: [...new Set([...routes.map((route) => route.tag), 'Webhooks'])].map((name) => ({ name })),
    paths,
    webhooks: WEBHOOKS,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http' as const,
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'From `POST /oauth2/token`, or from the provider that `OIDC` names',
        },
        wallet: { type: 'http' as const, scheme: 'dpop', description: "A wallet's access token (RFC 9449)" },
        streamToken: {
          type: 'apiKey' as const,
          in: 'query' as const,
          name: 'token',
          description: 'The same token',
        },
      },
    },
  };
  return createDocument(document, OPTIONS);
}

const CONDITION = z.object({
  'If-Match': z
    .string()
    .optional()
    .describe(
      'The `ETag` of what this edits: the call changes nothing, and answers 409, when it is another by now',
    ),
});
const TAG = {
  description: 'Tells this state of the thing from others, for `If-Match`',
  schema: { type: 'string' as const },
};

function takesCondition({ edits }: Route): boolean {
  return edits?.id !== undefined;
}

function operation(route: Route): ZodOpenApiOperationObject {
  const roles = rolesOf(route.access);
  const query = asObject(route.query);
  const described = [
    ...(route.description === undefined ? [] : [route.description]),
    ...(roles.length === 0
      ? []
      : [`Needs one of the roles: ${roles.map((role) => `\`${role}\``).join(', ')}.`]),
    ...(typeof route.access === 'object' && 'unrestricted' in route.access
      ? ['Not for clients that are restricted to some configurations.']
      : []),
  ];
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    ...(described.length > 0 && { description: described.join('\n\n') }),
    tags: [route.tag],
    security: securityOf(route.access),
    ...(roles.length > 0 && { 'x-roles': [...roles] }),
    requestParams: {
      path: pathParameters(route),
      ...(query !== undefined && { query }),
      ...(takesCondition(route) && { header: CONDITION }),
    },
    ...(route.body !== undefined && { requestBody: requestBody(route, route.body) }),
    responses: { ...failures(route), ...answers(route) } as Responses,
  };
}

/** `GET /client/:id/secret` becomes `getClientByIdSecret`. */
function operationIdOf({ method, path }: Route): string {
  const words = path.split(/[/.\-_]+/).filter((word) => word !== '');
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const named = words.map((word) => (word.startsWith(':') ? `By${capital(word.slice(1))}` : capital(word)));
  return method + (named.length === 0 ? 'Service' : named.join(''));
}

function rolesOf(access: Access): readonly string[] {
  if (typeof access === 'string') return [];
  if ('anyOf' in access) return access.anyOf;
  if ('service' in access) return access.service;
  return 'either' in access ? access.either : access.stream;
}

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return [];
  if (access === 'wallet') return [{ wallet: [] }];
  return 'stream' in access ? [{ bearer: [] }, { streamToken: [] }] : [{ bearer: [] }];
}

function pathParameters(route: Route): z.ZodObject {
  const described = asObject(route.params)?.shape ?? {};
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => name ?? '');
  return z.object(Object.fromEntries(names.map((name) => [name, described[name] ?? z.string()])));
}

/** The object behind a schema that is refined or renamed on its way in. */
function asObject(schema: z.ZodType | undefined): z.ZodObject | undefined {
  if (schema instanceof z.ZodObject) return schema;
  if (!(schema instanceof z.ZodPipe)) return undefined;
  return asObject(schema.in as z.ZodType) ?? asObject(schema.out as z.ZodType);
}

function requestBody(route: Route, schema: z.ZodType): NonNullable<ZodOpenApiOperationObject['requestBody']> {
  const content = { schema, ...(route.example !== undefined && { example: route.example }) };
  const kind = route.bodyKind ?? 'json';
  return {
    required: true,
    content: {
      ...(kind !== 'form' && { 'application/json': content }),
      ...((kind === 'form' || kind === 'json-or-form') && { 'application/x-www-form-urlencoded': content }),
      ...(kind === 'unread' && { 'application/jwt': { schema: COMPACT } }),
    },
  };
}

function answers(route: Route): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, answer]) => {
      if (typeof answer !== 'string') {
        const description = answer.description ?? meaning(status);
        const asJwt = (route.asJwt ?? route.bodyKind === 'unread') && Number(status) < 300;
        const content = {
          'application/json': { schema: answer },
          ...(asJwt && { 'application/jwt': { schema: COMPACT } }),
        };
        const headers = { ETag: TAG };
        return [status, { description, content, ...(route.edits !== undefined && { headers }) }];
      }
      // A sentence describes either a failure of the usual form or an answer that is not JSON.
      if (Number(status) < 400) return [status, { description: answer }];
      const stale = status === '409' && takesCondition(route) ? `. Or: ${meaning(status)}` : '';
      return [status, failure(route.surface, answer + stale)];
    }),
  );
}

/** What every route of its kind can answer, whether the table says so or not. */
function failures(route: Route): Record<string, object> {
  const { surface, access } = route;
  const statuses = [
    400,
    ...(access === 'public' ? [] : [401, 403]),
    ...(route.body === undefined ? [] : [413, 415]),
    ...(route.path.includes(':') ? [404] : []),
    ...(takesCondition(route) ? [409] : []),
    ...(route.rateLimit === undefined ? [] : [429]),
    ...[500, 503],
  ];
  return Object.fromEntries(
    statuses.map((status) => [String(status), failure(surface, meaning(String(status)))]),
  );
}

function failure(surface: Surface, description: string): object {
  const admin = surface === 'admin' || surface === 'document';
  if (surface === 'page') return { description, content: { 'text/html': { schema: { type: 'string' } } } };
  return {
    description,
    content: admin
      ? { 'application/problem+json': { schema: Problem } }
      : { 'application/json': { schema: ProtocolError } },
  };
}

function meaning(status: string): string {
  return MEANINGS[Number(status)] ?? `Status ${status}`;
}
