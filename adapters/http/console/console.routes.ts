import { object, z } from 'zod';
import { RedeemConsoleTicket } from '../../../application/console/redeem-console-ticket.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { ROLES, Role } from '../../../domain/clients/role.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { TokenView } from '../oauth/access-token.routes.ts';
import { family, reply, route } from '../route.ts';
import { ConsoleFiles, type ConsoleManifest } from './console-files.ts';

const HTML = 'text/html; charset=utf-8';
/** File names contain a hash of the content, so the files can be cached for ever. */
const IMMUTABLE = { 'Cache-Control': 'public, max-age=31536000, immutable' } as const;
/** The manifest of a later release has other file names. */
const NO_CACHE = { 'Cache-Control': 'no-cache' } as const;
const page = { tag: 'Service', surface: 'document', access: 'public', method: 'get' } as const;

const Ticket = object({ ticket: z.string().min(1).max(100).describe('Ticket of the link that the start printed') }).meta({
  id: 'ConsoleTicket',
});

const LoginView = object({
  provider: object({ issuer: z.string(), clientId: z.string() })
    .optional()
    .describe('OpenID provider of the operator for the login with the code flow and PKCE; absent: login with the credentials of a client'),
}).meta({ id: 'ConsoleLogin' });

const IdentityView = object({
  clientId: z.string(),
  tenantId: z.string().optional().describe('Absent for an account that manages tenants'),
  roles: z.array(Role),
}).meta({ id: 'Identity', description: 'Client or user of an access token' });

/** The console for operators: a page that uses only this interface. */
export const consoleRoutes = family({ redeemTicket: RedeemConsoleTicket, settings: ServiceSettings }, ({ redeemTicket, settings }) => {
  const base = new URL(settings.publicUrl).pathname.replace(/\/$/, '');
  const files = new ConsoleFiles();
  const { consoleLogin } = settings;
  const headers = { ...NO_CACHE, ...consoleHeaders(consoleLogin?.issuer) };
  return [
    route({
      ...page,
      path: '/console',
      operationId: 'getConsole',
      summary: 'The console, as a page',
      responses: { 200: { description: 'An HTML page', contentType: 'text/html' } },
      async handle() {
        const manifest = await files.manifest();
        const text = manifest === undefined ? NOT_BUILT : consolePage(base, manifest);
        return { status: 200, text, contentType: HTML, headers };
      },
    }),
    route({
      ...page,
      path: '/console/:file',
      operationId: 'getConsoleFile',
      exampleParameters: { file: 'icon.svg' },
      summary: 'A file of the console',
      params: object({ file: z.string().max(80) }),
      responses: { 200: 'A script, a style sheet or an image' },
      async handle({ params: { file } }) {
        const consoleFile = await files.read(file);
        if (consoleFile === undefined) throw new Failure('not_found', 'unknown address');
        const headers = file === 'icon.svg' ? NO_CACHE : IMMUTABLE;
        return { status: 200, text: consoleFile.content, contentType: consoleFile.contentType, headers };
      },
    }),
    route({
      tag: 'Authentication',
      surface: 'admin',
      access: 'public',
      method: 'get',
      path: '/console/login',
      operationId: 'getConsoleLogin',
      summary: 'Login methods of the console',
      responses: { 200: LoginView },
      handle: () => reply(200, consoleLogin === undefined ? {} : { provider: consoleLogin }),
    }),
    route({
      tag: 'Authentication',
      surface: 'admin',
      access: { either: ROLES },
      method: 'get',
      path: '/console/identity',
      operationId: 'getIdentity',
      summary: 'Read the calling client, its tenant and its present roles',
      responses: { 200: IdentityView },
      handle: ({ caller: { clientId, tenantId, roles } }) => reply(200, { clientId, ...(tenantId !== null && { tenantId }), roles }),
    }),
    route({
      method: 'post',
      path: '/console/login',
      operationId: 'logInToConsole',
      summary: 'Get an access token for a console link',
      description:
        'The start of a service that is not in production prints a link to the console with a ticket, which is valid once and ' +
        'for half an hour. The token is that of the built-in client.',
      tag: 'Authentication',
      surface: 'admin',
      access: 'public',
      body: Ticket,
      example: { ticket: '<ticket of the printed link>' },
      rateLimit: { group: 'token', perAddress: true },
      responses: { 200: TokenView, 401: 'The ticket is unknown, used or expired' },
      async handle({ body: { ticket } }) {
        const { token, expiresInSeconds } = await redeemTicket.execute(ticket);
        const view = { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds } as const;
        return reply(200, view, { 'Cache-Control': 'no-store', Pragma: 'no-cache' });
      },
    }),
  ];
});

/**
 * Allows resources of this service only, no inline script or style, and no framing.
 * @param provider issuer at which operators log in, from which the page requests the token.
 */
function consoleHeaders(provider: string | undefined): Readonly<Record<string, string>> {
  const connectSources = provider === undefined ? "'self'" : `'self' ${new URL(provider).origin}`;
  return {
    'Content-Security-Policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
      `connect-src ${connectSources}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  };
}

/** @param base path of the public address without a trailing slash, often empty. */
function consolePage(base: string, { script, style }: ConsoleManifest): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Vidimus console</title>
<link rel="icon" href="${base}/console/icon.svg">
<link rel="stylesheet" href="${base}/console/${style}">
<script type="module" src="${base}/console/${script}"></script>
</head>
<body>
<div id="console" data-base="${base}"><p>The console is loading. It needs JavaScript.</p></div>
</body>
</html>
`;
}

/** Page for a checkout that was never built. */
const NOT_BUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Vidimus console</title></head>
<body><main><h1>The console is not built</h1><p>Run <code>npm run build</code> and reload this page. <code>npm start</code> and
<code>npm run demo</code> do it by themselves.</p></main></body></html>
`;
