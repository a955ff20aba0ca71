import { z } from 'zod';
import {
  type CreateDocumentOptions,
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { isWritten } from '../../domain/shared/written.ts';
import { rolesOf } from './authenticate.ts';
import { IDEMPOTENCY_KEY } from './idempotency.ts';
import { answers, COMPACT, failures, takesCondition } from './openapi-answers.ts';
import { WEBHOOKS } from './openapi-webhooks.ts';
import type { Access, Route } from './route.ts';

export type OpenApiSettings = { readonly publicUrl: string; readonly version: string };

type Responses = ZodOpenApiOperationObject['responses'];

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
      ...(route.isRepeatable && { header: IDEMPOTENCY_KEY }),
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
