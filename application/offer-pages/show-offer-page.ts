import type { ShownCredential } from '../../domain/issuance/shown-credential.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../domain/oauth/token-request.ts';
import { type OfferStanding, parseOfferPageId, standingOf } from '../../domain/sessions/offer-page.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { isJsonObject } from '../../domain/shared/json.ts';
import type { TenantLook } from '../../domain/tenants/look.ts';
import { isDcApi, type PostedVerification } from '../../domain/verification/verification-request.ts';
import { needs } from '../needs.ts';
import { shownCredentials } from '../oauth/shown-credentials.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { tenantLook } from '../tenants/tenant-look.ts';
import { attempt } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { askedCredentials } from '../verification/asked-credentials.ts';
import { crossDeviceLink, walletLink } from '../verification/wallet-link.ts';

/** What a page invites to, for one that can still be taken. */
type Invitation = {
  /** Starts the wallet on this device. */
  readonly link: string;
  /** Starts the wallet on another device: the content of the QR code. */
  readonly crossDeviceLink: string;
  readonly expiresAt: Date;
  readonly credentials: readonly ShownCredential[];
  /** Whether the wallet asks for a code that the user was told elsewhere. */
  readonly needsCode: boolean;
  /** Why it is asked for, by language. */
  readonly purposes: readonly { readonly lang: string; readonly content: string }[];
};

export type OfferPage = { readonly look: TenantLook } & (
  | { readonly standing: Exclude<OfferStanding, 'open'> }
  | { readonly standing: 'open'; readonly kind: Session['kind']; readonly invitation: Invitation }
);

/** The page of an offer or a request, for the user's own browser. Looking at it is no step of the flow. */
export class ShowOfferPage extends needs({ ...WORLD, settings: ServiceSettings }) {
  /** @throws Failure `not_found` for an address that was not given out, or of a session that was removed. */
  execute(tenantId: TenantId, pageId: string): Promise<OfferPage> {
    const publicId = parseOfferPageId(this.ports.settings.nonceKeys, tenantId, pageId);
    return attempt(this.ports, tenantId, async (known) => {
      const session = publicId && (await known.presentSession(publicId));
      if (session === undefined || session.isHidden === true) throw unknown();
      const { configured, now } = known;
      const standing = standingOf(session, now);
      const { request } = session;
      if (standing !== 'open' || request === null)
        return { look: await tenantLook(configured), standing: standing === 'open' ? 'over' : standing };
      if (request.kind === 'issuance') return ofOffer(configured, session, request);
      if (isDcApi(request)) throw unknown();
      return ofRequest(configured, session, request);
    });
  }
}

function unknown(): Failure {
  return new Failure('not_found', 'unknown address');
}

async function ofOffer(
  configured: TenantConfiguration,
  { configurationIds, expiresAt }: Session,
  { offer, offerUrl }: IssuanceRequest,
): Promise<OfferPage> {
  const { grants } = offer;
  const grant = isJsonObject(grants) ? grants[PRE_AUTHORIZED_CODE_GRANT] : undefined;
  return {
    look: await tenantLook(configured),
    standing: 'open',
    kind: 'issuance',
    invitation: {
      link: offerUrl,
      crossDeviceLink: offerUrl,
      expiresAt,
      credentials: await shownCredentials(configured, configurationIds),
      needsCode: isJsonObject(grant) && grant['tx_code'] !== undefined,
      purposes: [],
    },
  };
}

async function ofRequest(
  configured: TenantConfiguration,
  { configurationIds: [id = ''], expiresAt }: Session,
  request: PostedVerification,
): Promise<OfferPage> {
  const configuration = await configured.presentationConfiguration(id);
  const otherDevice = crossDeviceLink(request, configuration);
  if (otherDevice === undefined) throw unknown();
  const look = await tenantLook(configured, [configuration?.registrationCert]);
  const name = configuration?.clientName;
  return {
    look: typeof name === 'string' ? { ...look, name, displays: [] } : look,
    standing: 'open',
    kind: 'verification',
    invitation: {
      link: walletLink(request, configuration),
      crossDeviceLink: otherDevice,
      expiresAt,
      credentials: await askedCredentials(configured, request.dcqlQuery),
      needsCode: false,
      purposes: configuration?.purpose ?? [],
    },
  };
}
