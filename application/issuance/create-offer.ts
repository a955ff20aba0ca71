import { createHash } from 'node:crypto';
import { assertMayUse } from '../../domain/clients/client.ts';
import {
  checkOfferRequest,
  composeOffer,
  type OfferRequest,
  offerLink,
} from '../../domain/issuance/offer.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { StaleView, type UnconfirmedCaller } from '../caller.ts';
import { hashTxCode } from '../oauth/redeem-grant.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { SchemaValidator } from '../ports/schema-validator.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { NewGrant, Store } from '../ports/store.ts';
import { claimsFaults } from '../steps/collect-claims.ts';

type Ports = {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
  readonly schemaValidator: SchemaValidator;
};

export type CreatedOffer = {
  readonly uri: string;
  readonly session: SessionId;
  readonly crossDeviceUri: string;
};

/** Offers credentials to a wallet: a session, a single-use code and a link (OpenID4VCI 1.0 section 4.1). */
export class CreateOffer {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `forbidden` outside the client's configurations, `invalid_input` with the path of the fault. */
  async execute(caller: UnconfirmedCaller, request: OfferRequest): Promise<CreatedOffer> {
    const { store, clock, random, settings } = this.#ports;
    const { tenantId, unconfirmedView: view } = caller;
    const issuer = issuerIdentifier(settings, tenantId);
    assertMayUse(caller.allowedIssuanceConfigs, request.credentialConfigurationIds);
    const configurations = await view.credentialConfigurations();
    const known = view.derive('credentials/ids', () => new Set(configurations.map(({ id }) => id)));
    checkOfferRequest(request, known, issuer);
    await this.#checkInlineClaims(caller, request);

    const now = clock.now();
    const sessionConfig = (await view.tenant()).sessionConfig;
    const expiresAt = new Date(
      now.getTime() + (sessionConfig?.ttlSeconds ?? settings.sessionTtlSeconds) * 1000,
    );
    const id = random.token() as SessionId;
    const publicId = random.token() as PublicId;
    const code = random.token(256);
    const offerUri = `${issuer}/credential-offer/${publicId}`;
    const uri = offerLink(offerUri);
    const session: Session = {
      tenantId,
      id,
      publicId,
      kind: 'issuance',
      status: 'active',
      version: 1,
      createdAt: now,
      updatedAt: now,
      expiresAt,
      configurationIds: request.credentialConfigurationIds,
      useDcApi: false,
      request: issuanceRequest(request, composeOffer(issuer, request, code), uri),
      outcome: null,
      issuedMask: 0,
      claimedAt: null,
    };
    const grant: NewGrant = {
      id: random.token(),
      kind: 'pre_authorized_code',
      sessionId: id,
      publicId,
      codeHash: createHash('sha256').update(code).digest('base64url'),
      txCodeHash: request.tx_code === undefined ? null : hashTxCode(settings, request.tx_code),
      credentialConfigurationIds: request.credentialConfigurationIds,
      expiresAt,
    };
    if (!(await store.beats(tenantId).openSession(session, grant, view.head.revision))) throw new StaleView();
    return { uri, session: id, crossDeviceUri: uri };
  }

  /** Claims that could never be issued are refused now, where the backend sees it, and not at the wallet. */
  async #checkInlineClaims(
    { unconfirmedView: view }: UnconfirmedCaller,
    request: OfferRequest,
  ): Promise<void> {
    for (const [id, source] of Object.entries(request.credentialClaims ?? {})) {
      if (source.type !== 'inline') continue;
      const configuration = await view.credentialConfiguration(id);
      if (configuration === undefined) continue;
      const [fault] = claimsFaults(this.#ports.schemaValidator, view, configuration, source.claims);
      if (fault !== undefined)
        throw invalidInput(`credentialClaims.${id}.claims${fault.path}`, fault.message);
    }
  }
}

function issuanceRequest(request: OfferRequest, offer: JsonObject, offerUrl: string): IssuanceRequest {
  const { tx_code: _secret, credentialClaims = {}, ...rest } = request;
  return {
    kind: 'issuance',
    offerRequest: rest as unknown as JsonObject,
    offer,
    offerUrl,
    credentialClaims: credentialClaims as IssuanceRequest['credentialClaims'],
  };
}
