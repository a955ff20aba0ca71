import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Backend } from '../support/backend.ts';
import type { HeldCredential } from '../support/present.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { createRevocableIssuer } from '../support/revocable-cards.ts';
import { Deployment, type DeploymentOptions } from './deployment.ts';
import { Ledger } from './ledger.ts';

const CARD_TYPE = 'urn:shown:1';
/** Maximum delay of a backend, so that some deliveries are pending during a kill. */
const BACKEND_MS = 60;

export type Tenant = { readonly id: string; readonly token: string };

/** A deployment with a tenant that issues and verifies, its backend, and the ledger of responses. */
export class World {
  readonly deployment: Deployment;
  readonly ledger: Ledger;
  readonly backend: Backend;
  readonly tenant: Tenant;
  /** Credentials that wallets present. */
  readonly held: readonly HeldCredential[];
  databaseUrl: string;

  private constructor(properties: Omit<World, 'end' | 'call'>) {
    this.deployment = properties.deployment;
    this.ledger = properties.ledger;
    this.backend = properties.backend;
    this.tenant = properties.tenant;
    this.held = properties.held;
    this.databaseUrl = properties.databaseUrl;
  }

  static async open(options: DeploymentOptions, id = 'acme'): Promise<World> {
    const deployment = await Deployment.start(options);
    try {
      return await World.createBeside(deployment, options.databaseUrl, id);
    } catch (error) {
      await deployment.end();
      throw error;
    }
  }

  /** Another tenant of a deployment. */
  static async createBeside(deployment: Deployment, databaseUrl: string, id: string): Promise<World> {
    const backend = await Backend.start();
    try {
      const ledger = new Ledger(join(deployment.folder, `${id}.ledger`));
      backend.on('/presented', (response, { headers, body }) => {
        ledger.delivered(String(body.session), String(headers['idempotency-key']));
        void pause(Math.random() * BACKEND_MS).then(() => response.writeHead(204).end());
      });
      const set = await setUp(deployment, backend, id);
      return new World({ deployment, backend, ledger, databaseUrl, ...set });
    } catch (error) {
      await backend.close();
      throw error;
    }
  }

  call(method: string, path: string, json?: unknown) {
    return this.deployment.call(method, path, { token: this.tenant.token, ...(json !== undefined && { json }) });
  }

  async end(): Promise<void> {
    await this.deployment.end();
    await this.backend.close();
    rmSync(this.deployment.folder, { recursive: true, force: true });
  }
}

async function setUp(deployment: Deployment, backend: Backend, id: string) {
  const tenant = await createRevocableIssuer(deployment, id, 10);
  const post = async (path: string, json: object) => {
    const answer = await deployment.call('POST', path, { token: tenant.token, json });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  await post('/issuer/credentials', {
    id: 'shown',
    config: { format: 'dc+sd-jwt', display: [{ name: 'Shown', locale: 'en' }] },
    vct: CARD_TYPE,
    claims: { name: 'Ada' },
    disclosureFrame: { _sd: ['name'] },
  });
  const queryConfig = {
    dcql_query: { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [CARD_TYPE] }, claims: [{ path: ['name'] }] }] },
    trustAnchors: [{ keyChainId: 'signing' }],
    redirectUri: 'https://shop.example/done',
  };
  await post('/verifier/config', { ...queryConfig, id: 'plain' });
  await post('/verifier/config', { ...queryConfig, id: 'hooked', webhook: { url: `${backend.url}/presented` } });
  const credentials: HeldCredential[] = [];
  while (credentials.length < 3) {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['shown'] };
    const offer = await post('/issuer/offer', json);
    const wallet = new RawWallet(deployment, id);
    const holder = newKey();
    const credentialResponse = await wallet.request(await wallet.accessToken(offer.uri), 'shown', { key: holder });
    if (credentialResponse.status !== 200) throw new Error(`credential: ${credentialResponse.status} ${credentialResponse.text}`);
    credentials.push({ text: credentialResponse.body.credentials[0].credential, holder, session: offer.session });
  }
  return { tenant, held: credentials };
}
