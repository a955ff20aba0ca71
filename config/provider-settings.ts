import { z } from 'zod';
import { FOREIGN_ALGORITHMS } from '../domain/oauth/foreign-token.ts';
import { claimName, issuerUrl } from './setting-values.ts';

/** An OpenID provider of the operator, which says who calls in the place of this service. */
export const PROVIDER = {
  OIDC: issuerUrl
    .optional()
    .describe(
      'Issuer of an external OpenID provider, letter by letter as its tokens name it. Administrative access tokens then come from there, with `platform-service` in `aud`, and `/oauth2/token` gives none',
    ),
  OIDC_INTERNAL_ISSUER_URL: issuerUrl
    .optional()
    .describe('Where this service reaches the provider, when that is not `OIDC`'),
  OIDC_CLIENT_ID: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Client of this service at the provider; `GET /health` logs in with it'),
  OIDC_CLIENT_SECRET: z.string().min(1).max(4096).optional().describe('Its secret'),
  OIDC_CONSOLE_CLIENT_ID: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe(
      'Public client at the provider with which people log in to the console (code with PKCE); its redirect address is `PUBLIC_URL/console`',
    ),
  OIDC_SUB: claimName
    .default('tenant_id')
    .describe(
      'Claim with the tenant id; an account that manages tenants has its own client id there, and the role `tenants:manage`',
    ),
  OIDC_ACTOR_CLAIM: claimName
    .default('sub')
    .describe(
      'Claim that names the person who calls, such as `sub` or `preferred_username`. The audit log, the log of requests and limits tell persons of one client apart by it',
    ),
  OIDC_ROLES: z
    .string()
    .regex(/^[^.\s]+(\.[^.\s]+){0,9}$/, 'names joined by dots')
    .optional()
    .describe(
      'Where roles stand in tokens, such as `resource_access.vidimus.roles`. Default: `roles`, else `realm_access.roles`',
    ),
  OIDC_ALGORITHM: z.enum(FOREIGN_ALGORITHMS).default('RS256').describe('Signature algorithm of the tokens'),
};
