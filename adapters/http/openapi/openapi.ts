import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { IDEMPOTENCY_KEY } from '../input/idempotency.ts';
import type { Access, Route } from '../route.ts';
import { rolesOf } from '../server/authenticate.ts';
import { COMPACT, failureResponsesOf, responsesOf, takesCondition } from './openapi-answers.ts';
import { ABOUT_EXAMPLES } from './openapi-examples.ts';
import { DOCUMENT_OPTIONS, finishDocument } from './openapi-schemas.ts';
import { WEBHOOKS } from './openapi-webhooks.ts';

export type OpenApiSettings = {
  readonly publicUrl: string;
  readonly version: string;
  /** The schemas are those of the program, without the rewrites for common generators. */
  readonly isExact?: boolean;
};

type Responses = ZodOpenApiOperationObject['responses'];

/** Describes the route table (OpenAPI 3.1). Schemas with an id become components. */
export function buildOpenApi(routes: readonly Route[], settings: OpenApiSettings): object {
  const paths: ZodOpenApiPathsObject = {};
  const orderedRoutes = inOrder(routes);
  for (const route of orderedRoutes) {
    const path = route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operation(route) };
  }
  const document = {
    openapi: '3.1.0' as const,
    info: {
      title: 'Vidimus',
      version: settings.version,
      description: `Issues digital credentials to wallets and verifies what wallets present, for many tenants.\n\n${ABOUT_EXAMPLES}`,
    },
    servers: [{ url: settings.publicUrl }],
    tags: tagsOf(orderedRoutes),
    paths,
    webhooks: WEBHOOKS,
    components: {
      securitySchemes: {
        clientCredentials: {
          type: 'oauth2' as const,
          description: 'With the id and the secret of a client; not where `OIDC` names a provider',
          flows: { clientCredentials: { tokenUrl: `${settings.publicUrl}/oauth2/token`, scopes: {} } },
        },
        bearer: {
          type: 'http' as const,
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Token of `POST /oauth2/token`, or of the provider in `OIDC`',
        },
        wallet: { type: 'http' as const, scheme: 'dpop', description: "A wallet's access token (RFC 9449)" },
        streamToken: { type: 'apiKey' as const, in: 'query' as const, name: 'token', description: 'The same token' },
      },
    },
  };
  return finishDocument(createDocument(document, DOCUMENT_OPTIONS), routes, settings.isExact);
}

/** RFC 9110 section 13.1.1, for lists of practical length. It is one string, because generators leave out headers of several types. */
const ENTITY_TAGS = /^([*]|"[!#-~]{1,100}"|W[/]"[!#-~]{1,100}"|"[!#-~]{1,100}", "[!#-~]{1,100}")$/;
const CONDITION = z.object({
  'If-Match': z
    .string()
    .regex(ENTITY_TAGS)
    .optional()
    .describe('The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409'),
});
function operation(route: Route): ZodOpenApiOperationObject {
  const roles = rolesOf(route.access);
  const query = asObject(route.described?.query ?? route.query);
  const paragraphs = [
    ...(route.description === undefined ? [] : [route.description]),
    ...(roles.length === 0 ? [] : [`Requires one of the roles: ${roles.map((role) => `\`${role}\``).join(', ')}.`]),
    ...(typeof route.access === 'object' && 'unrestricted' in route.access
      ? ['Not for clients that are restricted to some configurations.']
      : []),
  ];
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(paragraphs.length > 0 && { description: paragraphs.join('\n\n') }),
    tags: [route.tag],
    security: securityOf(route.access),
    ...(roles.length > 0 && { 'x-roles': [...roles] }),
    requestParams: {
      path: pathParameters(route),
      ...(query !== undefined && { query }),
      ...(takesCondition(route) && { header: CONDITION }),
      ...(route.isRepeatable && { header: IDEMPOTENCY_KEY }),
      ...(route.described?.headers !== undefined && { header: route.described.headers }),
    },
    ...(route.body !== undefined && { requestBody: requestBody(route, route.body) }),
    responses: { ...failureResponsesOf(route), ...responsesOf(route) } as Responses,
  };
}

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return [];
  if (access === 'wallet') return [{ wallet: [] }];
  const schemes = [{ bearer: [] }, { clientCredentials: [] }];
  return 'stream' in access ? [...schemes, { streamToken: [] }] : schemes;
}

function pathParameters(route: Route): z.ZodObject {
  const shape = asObject(route.params)?.shape ?? {};
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => name ?? '');
  return z.object(Object.fromEntries(names.map((name) => [name, shape[name] ?? z.string()])));
}

/** Object schema behind a schema that refines or transforms it. */
function asObject(schema: z.ZodType | undefined): z.ZodObject | undefined {
  if (schema instanceof z.ZodObject) return schema;
  if (!(schema instanceof z.ZodPipe)) return undefined;
  return asObject(schema.in as z.ZodType) ?? asObject(schema.out as z.ZodType);
}

function requestBody(route: Route, schema: z.ZodType): NonNullable<ZodOpenApiOperationObject['requestBody']> {
  // Some use cases parse their body themselves, to distinguish missing properties from null.
  const { members = schema } = route;
  const { json = members, form = members } = route.described ?? {};
  const example = route.example !== undefined && { example: route.example };
  const kind = route.bodyKind ?? 'json';
  return {
    required: route.surface !== 'admin' || !members.safeParse({}).success,
    content: {
      ...(kind !== 'form' && { 'application/json': { schema: json, ...example } }),
      ...((kind === 'form' || kind === 'json-or-form') && { 'application/x-www-form-urlencoded': { schema: form, ...example } }),
      ...(kind === 'unread' && { 'application/jwt': { schema: COMPACT } }),
    },
  };
}

/** Tags in reading order: access first, then the subjects of the interface. */
const TAGS: Readonly<Record<string, string>> = {
  Authentication: 'Access tokens for administrators and backends',
  Tenants: 'Issuers and verifiers; each has its own keys, configurations and sessions',
  Issuer: 'Credential configurations and offers',
  Verifier: 'Presentation configurations, and requests',
  Sessions: 'Sessions of offers and presentation requests, with status and result',
  Clients: 'Clients of this API, with their roles',
  Keys: 'Key chains: keys with their certificates',
  'Status lists': 'Status lists for revoked and suspended credentials',
  'Trust lists': 'Published trust lists',
  Registrar: 'Certificates that a registrar gives to relying parties',
  Webhooks: 'Calls of this service to backends, and their signatures',
  'Webhook calls': 'Requests that this service sends to a backend',
  Caches: 'Cached lists of other operators',
  'Audit log': 'Audit log of all changes',
  'Pages for users': 'Pages for users, besides the pages of wallet flows',
  Service: 'The service itself, and this description',
};

/** Prefix of the tags for wallets, which come last. */
const WALLET_TAG_PREFIX = 'Wallet: ';

/** Sorts the routes by their tags in reading order. */
function inOrder(routes: readonly Route[]): readonly Route[] {
  const names = Object.keys(TAGS);
  const rank = ({ tag }: Route) => (names.includes(tag) ? names.indexOf(tag) : names.length);
  return routes.toSorted((a, b) => rank(a) - rank(b));
}

function tagsOf(routes: readonly Route[]): { name: string; description?: string }[] {
  const wallets = routes.map(({ tag }) => tag).filter((tag) => tag.startsWith(WALLET_TAG_PREFIX));
  const documentedTags = Object.entries(TAGS).map(([name, description]) => ({ name, description }));
  return [...documentedTags, ...[...new Set(wallets)].map((name) => ({ name }))];
}
