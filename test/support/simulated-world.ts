import { expect } from 'chai';
import { type Exchange, SimulatedWallet } from '../../packages/wallet/src/core/index.ts';
import { createTenant, startTestService, type TestService } from './test-service.ts';

const NAMESPACE = 'org.iso.18013.5.1';
export const CARDS = {
  diploma: {
    config: {
      format: 'dc+sd-jwt',
      scope: 'diploma',
      display: [
        { name: 'Diplôme', locale: 'fr' },
        { name: 'Diploma', locale: 'en', background_color: '#12355b', text_color: '#ffffff' },
      ],
      claims: [{ path: ['degree'], display: [{ name: 'Degree', locale: 'en' }] }],
    },
    vct: 'urn:example:diploma',
    claims: {
      degree: 'Mathematics',
      given_name: 'Ada',
      honours: true,
      address: { locality: 'London', country: 'GB' },
      languages: ['en', 'fr'],
    },
    disclosureFrame: {
      _sd: ['degree', 'given_name', 'honours', 'languages', 'address'],
      _sd_decoy: 2,
      address: { _sd: ['locality', 'country'] },
      languages: { _sd: [0, 1] },
    },
  },
  licence: {
    config: {
      format: 'mso_mdoc',
      scope: 'licence',
      docType: 'org.iso.18013.5.1.mDL',
      namespace: NAMESPACE,
      display: [{ name: 'Licence', locale: 'en' }],
      claimsByNamespace: {
        [NAMESPACE]: {
          family_name: 'Lovelace',
          birth_date: '1985-12-10',
          document_number: '1234567',
          driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }],
        },
      },
    },
  },
};
export const QUERIES = {
  diploma: {
    id: 'diploma',
    format: 'dc+sd-jwt',
    meta: { vct_values: ['urn:example:diploma'] },
    claims: [{ path: ['degree'] }, { path: ['address', 'locality'] }],
  },
  licence: {
    id: 'licence',
    format: 'mso_mdoc',
    meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
    claims: [{ path: [NAMESPACE, 'document_number'] }, { path: [NAMESPACE, 'driving_privileges'] }],
  },
};
/** Expected claims of responses to the queries. */
export const EXPECTED_VALUES = {
  diploma: { degree: 'Mathematics', address: { locality: 'London' } },
  licence: { [NAMESPACE]: { document_number: '1234567', driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }] } },
};
export type CardName = keyof typeof CARDS;
export const CARD_NAMES = Object.keys(CARDS) as CardName[];

/** A tenant that issues and requests a diploma and a licence, and a simulated wallet with both. */
export class SimulatedWorld {
  readonly wallet: SimulatedWallet;
  readonly exchanges: Exchange[] = [];
  /** Issuance sessions of the wallet. */
  readonly offers = {} as Record<CardName, string>;
  readonly #service: TestService;
  readonly #token: string;

  private constructor(service: TestService, token: string) {
    this.#service = service;
    this.#token = token;
    this.wallet = new SimulatedWallet({ onExchange: (exchange) => this.exchanges.push(exchange) });
  }

  static async open(): Promise<SimulatedWorld> {
    const service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    const simulatedWorld = new SimulatedWorld(service, token);
    await simulatedWorld.post('/key-chain', { id: 'gb', usageType: 'signing', country: 'GB' });
    for (const name of CARD_NAMES) {
      const extra = { keyChainId: 'gb', statusManagement: true, lifeTime: 86_400 };
      await simulatedWorld.post('/issuer/credentials', { id: name, ...CARDS[name], ...extra });
      await simulatedWorld.post('/verifier/config', {
        id: name,
        dcql_query: { credentials: [QUERIES[name]] },
        trustAnchors: [{ keyChainId: 'gb' }],
        mdlProfile: 'none',
      });
      const { uri, session } = await simulatedWorld.offer([name]);
      simulatedWorld.offers[name] = session;
      await simulatedWorld.wallet.accept(await simulatedWorld.wallet.readOffer(uri));
    }
    return simulatedWorld;
  }

  async post(path: string, json: object) {
    const answer = await this.#service.call('POST', path, { token: this.#token, json });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  }

  offer(ids: readonly string[], extra: object = {}) {
    return this.post('/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ids, ...extra });
  }

  requestPresentation(requestId: string) {
    return this.post('/verifier/offer', { response_type: 'uri', requestId });
  }

  async session(id: string) {
    return (await this.#service.call('GET', `/session/${id}`, { token: this.#token })).body;
  }

  close(): Promise<void> {
    return this.#service.close();
  }
}
