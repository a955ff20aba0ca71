import { z } from 'zod';
import type { CreateNonce } from '../../../application/issuance/create-nonce.ts';
import type { FetchOffer } from '../../../application/issuance/fetch-offer.ts';
import type { IssueCredential, WalletRequest } from '../../../application/issuance/issue-credential.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { headerValues } from '../header-values.ts';
import { type RawRequest, type Route, Routes, reply, route } from '../route.ts';

type UseCases = {
  readonly fetchOffer: FetchOffer;
  readonly createNonce: CreateNonce;
  readonly issueCredential: IssueCredential;
};

const Tenant = z.object({ tenant: z.string().max(63) });
const tag = 'Wallet: issuance';
const Document = z.record(z.string(), z.unknown());

const DeferralView = z.object({ transaction_id: z.string(), interval: z.number() });

export function walletRequest(request: RawRequest): WalletRequest {
  return {
    wallet: { authorization: request.headers.authorization, dpop: headerValues(request, 'dpop') },
    contentType: request.headers['content-type'],
    body: request.bytes,
  };
}

/** What wallets call to get a credential (OpenID4VCI 1.0). */
export class IssuanceWalletRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    const { fetchOffer, createNonce, issueCredential } = useCases;
    this.routes = [
      route({
        method: 'post',
        path: '/:tenant/credential',
        summary: 'Issue a credential (OpenID4VCI 1.0 section 8)',
        description: 'Request and response may be encrypted (section 10).',
        tag,
        surface: 'vci',
        access: 'wallet',
        params: Tenant,
        body: Document,
        bodyKind: 'unread',
        bodyLimit: 512 * 1024,
        responses: {
          200: z.object({
            credentials: z.array(z.object({ credential: z.string() })),
            notification_id: z.string(),
          }),
          202: DeferralView,
        },
        async handle({ params, request }) {
          const { status, text, contentType } = await issueCredential.execute(
            params.tenant as TenantId,
            walletRequest(request),
          );
          return { status, text, contentType };
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
