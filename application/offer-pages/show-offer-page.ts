import type { CredentialPreview } from '../../domain/issuance/credential-preview.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../domain/oauth/token-request.ts';
import { type OfferStatus, offerStatusOf, parseOfferPageId } from '../../domain/sessions/offer-page.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { isJsonObject } from '../../domain/shared/json.ts';
import type { TenantBranding } from '../../domain/tenants/branding.ts';
import { isDcApi, type PostedVerification } from '../../domain/verification/verification-request.ts';
import { needs } from '../needs.ts';
import { previewCredentials } from '../oauth/preview-credentials.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { tenantBranding } from '../tenants/tenant-branding.ts';
import { attempt } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { previewQueriedCredentials } from '../verification/preview-queried-credentials.ts';
import { crossDeviceLink, walletLink } from '../verification/wallet-link.ts';

type Invitation = {
  /** Link that opens a wallet on this device. */
  readonly link: string;
  /** Content of the QR code for a wallet on another device. */
  readonly crossDeviceLink: string;
  readonly expiresAt: Date;
  readonly credentials: readonly CredentialPreview[];
  /** True if the wallet asks for a transaction code. */
  readonly needsCode: boolean;
  /** Purpose of the request by language. */
  readonly purposes: readonly { readonly lang: string; readonly content: string }[];
};

export type OfferPage = { readonly look: TenantBranding } & (
  | { readonly status: Exclude<OfferStatus, 'open'> }
  | { readonly status: 'open'; readonly kind: Session['kind']; readonly invitation: Invitation }
);

/** Shows the page of an offer or a request in the user's browser. Showing it changes nothing. */
export class ShowOfferPage extends needs({ ...TRANSACTION_PORTS, settings: ServiceSettings }) {
  /** @throws Failure `not_found` for an unknown address, or of a removed session. */
  execute(tenantId: TenantId, pageId: string): Promise<OfferPage> {
    const publicId = parseOfferPageId(this.ports.settings.nonceKeys, tenantId, pageId);
    return attempt(this.ports, tenantId, async (transaction) => {
      const session = publicId && (await transaction.currentSession(publicId));
      if (session === undefined || session.isHidden === true) throw unknownAddressError();
      const { tenant, now } = transaction;
      const status = offerStatusOf(session, now);
      const { request } = session;
      if (status !== 'open' || request === null) return { look: await tenantBranding(tenant), status: status === 'open' ? 'over' : status };
      if (request.kind === 'issuance') return offerInvitation(tenant, session, request);
      if (isDcApi(request)) throw unknownAddressError();
      return requestInvitation(tenant, session, request);
    });
  }
}

function unknownAddressError(): Failure {
  return new Failure('not_found', 'unknown address');
}

async function offerInvitation(
  tenant: TenantConfiguration,
  { configurationIds, expiresAt }: Session,
  { offer, offerUrl }: IssuanceRequest,
): Promise<OfferPage> {
  const { grants } = offer;
  const grant = isJsonObject(grants) ? grants[PRE_AUTHORIZED_CODE_GRANT] : undefined;
  return {
    look: await tenantBranding(tenant),
    status: 'open',
    kind: 'issuance',
    invitation: {
      link: offerUrl,
      crossDeviceLink: offerUrl,
      expiresAt,
      credentials: await previewCredentials(tenant, configurationIds),
      needsCode: isJsonObject(grant) && grant['tx_code'] !== undefined,
      purposes: [],
    },
  };
}

async function requestInvitation(
  tenant: TenantConfiguration,
  { configurationIds: [id = ''], expiresAt }: Session,
  request: PostedVerification,
): Promise<OfferPage> {
  const configuration = await tenant.presentationConfiguration(id);
  const crossDeviceUrl = crossDeviceLink(request, configuration);
  if (crossDeviceUrl === undefined) throw unknownAddressError();
  const branding = await tenantBranding(tenant, [configuration?.registrationCert]);
  const name = configuration?.clientName;
  return {
    look: typeof name === 'string' ? { ...branding, name, displays: [] } : branding,
    status: 'open',
    kind: 'verification',
    invitation: {
      link: walletLink(request, configuration),
      crossDeviceLink: crossDeviceUrl,
      expiresAt,
      credentials: await previewQueriedCredentials(tenant, request.dcqlQuery),
      needsCode: false,
      purposes: configuration?.purpose ?? [],
    },
  };
}
