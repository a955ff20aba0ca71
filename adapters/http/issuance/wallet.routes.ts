import { z } from 'zod';
import type { CreateNonce } from '../../../application/issuance/create-nonce.ts';
import type { FetchOffer } from '../../../application/issuance/fetch-offer.ts';
import type { IssueCredential } from '../../../application/issuance/issue-credential.ts';
import type { RedeemGrant } from '../../../application/oauth/redeem-grant.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { headerValues } from '../header-values.ts';
import { type Route, Routes, reply, route } from '../route.ts';

type UseCases = {
  readonly fetchOffer: FetchOffer;
  readonly redeemGrant: RedeemGrant;
  readonly createNonce: CreateNonce;
  readonly issueCredential: IssueCredential;
};

const Tenant = z.object({ tenant: z.string().max(63) });
const tag = 'Wallet: issuance';
const Document = z.record(z.string(), z.unknown());

/** What wallets call to get a credential (OpenID4VCI 1.0). */
export class IssuanceWalletRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    const { fetchOffer, redeemGrant, createNonce, issueCredential } = useCases;
    this.routes = [
      route({
        method: 'post',
        path: '/:tenant/credential',
        summary: 'Issue a credential (OpenID4VCI 1.0 section 8)',
        tag,
        surface: 'vci',
        access: 'wallet',
        params: Tenant,
        body: z.record(z.string(), z.unknown()),
        bodyLimit: 512 * 1024,
        responses: { 200: z.object({ credentials: z.array(z.object({ credential: z.string() })) }) },
        async handle({ params, body, request }) {
          const wallet = {
            authorization: request.headers.authorization,
            dpop: headerValues(request, 'dpop'),
          };
          const credentials = await issueCredential.execute(
            params.tenant as TenantId,
            wallet,
            body as JsonObject,
          );
          return reply(200, { credentials: credentials.map((credential) => ({ credential })) });
        },
      }),
      route({
        method: 'post',
        path: '/:tenant/nonce',
        summary: 'Get a nonce for proofs (OpenID4VCI 1.0 section 7)',
        tag,
        surface: 'vci',
        access: 'public',
        params: Tenant,
        responses: { 200: z.object({ c_nonce: z.string() }) },
        async handle({ params }) {
          return reply(200, { c_nonce: await createNonce.execute(params.tenant as TenantId) });
        },
      }),
      route({
        method: 'post',
        path: '/:tenant/token',
        summary: 'Redeem a pre-authorized code (OpenID4VCI 1.0 section 6)',
        tag,
        surface: 'oauth',
        access: 'public',
        params: Tenant,
        body: z.record(z.string(), z.string()),
        bodyKind: 'form',
        responses: {
          200: z.object({
            access_token: z.string(),
            token_type: z.enum(['DPoP', 'Bearer']),
            expires_in: z.number(),
            authorization_details: z.array(Document).optional(),
          }),
        },
        async handle({ params, body, request }) {
          const token = await redeemGrant.execute(
            params.tenant as TenantId,
            body,
            headerValues(request, 'dpop'),
          );
          return reply(200, token, { Pragma: 'no-cache' });
        },
      }),
      route({
        method: 'get',
        path: '/:tenant/credential-offer/:offerId',
        summary: 'Fetch a credential offer (OpenID4VCI 1.0 section 4.1.3)',
        tag,
        surface: 'vci',
        access: 'public',
        params: z.object({ tenant: z.string().max(63), offerId: z.string().max(64) }),
        responses: { 200: Document },
        async handle({ params }) {
          return reply(200, await fetchOffer.execute(params.tenant as TenantId, params.offerId as PublicId));
        },
      }),
    ];
  }
}
