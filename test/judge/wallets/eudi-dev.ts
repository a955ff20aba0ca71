import { type ChildProcess, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Authorities } from '../../demo/authorities.ts';
import { freePort } from '../../demo/process.ts';
import { approve } from '../../wallets/openid4vc/browser.ts';
import type { Flow } from '../flows.ts';
import { runProgram } from '../run-program.ts';
import { isStrict } from '../tenant.ts';
import type { Format, Profile, Tool } from '../verdict.ts';
import type { Answer, CredentialOfferInput, PageRequest, WalletRun, WalletUnderTest, WalletWorld } from '../wallet.ts';

const CALL_SECONDS = 30;
type JsonProperties = Record<string, unknown>;

type StartOptions = { readonly version: string; readonly authorities: Authorities };

/**
 * eudi-dev, a strict test wallet in Go. It runs as a separate server and is controlled by its HTTP interface. It listens on all addresses
 * of the machine and has its own folder. It has no profile `eu`, so it runs with `--haip` instead.
 */
export class EudiDev implements WalletUnderTest {
  readonly tool: Tool;
  readonly #authorities: Authorities;
  readonly #program: string;
  readonly #address: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(
    { program, version, authorities }: StartOptions & { readonly program: string },
    address: string,
    child: ChildProcess,
    folder: string,
  ) {
    this.#authorities = authorities;
    this.#program = program;
    this.tool = { name: 'eudi-dev', version, about: 'a test wallet in Go, `--mode strict`, under haip and eu `--haip`' };
    this.#address = address;
    this.#child = child;
    this.#folder = folder;
  }

  /** @param program path of the executable. @throws Error when it does not start. */
  static async start(program: string, options: StartOptions): Promise<EudiDev> {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-judge-'));
    const port = await freePort(createServer);
    const child = spawn(
      program,
      [
        ...['wallet', 'serve', '--port', String(port), '--wallet-dir', join(folder, 'wallet')],
        // The wallet creates its encryption key only at startup; `begin` sets for each flow whether it requires encryption.
        '--require-encrypted-request',
        ...['--mode', 'strict', '--auto-accept', '--no-register', '--no-open'],
      ],
      { env: { HOME: folder, EUDI_DEV_HOME: folder, PATH: process.env['PATH'] }, stdio: 'ignore' },
    );
    const address = `http://127.0.0.1:${port}`;
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    const wallet = new EudiDev({ ...options, program }, address, child, folder);
    try {
      await Promise.race([wallet.#started(), failed]);
    } catch (error) {
      await wallet.close();
      throw error;
    }
    return wallet;
  }

  async trust(): Promise<JsonProperties> {
    const { provider } = this.#authorities;
    const ca = new X509Certificate(await this.#text('/api/certificates/ca'));
    const certificates = [ca.raw.toString('base64')];
    const services = ['Issuance', 'Revocation'].map((serviceKind) => ({ type: `WalletSolution/${serviceKind}`, certificates }));
    provider.published = provider.list({ entities: [provider.entity(), { name: 'eudi-dev', services }] });
    return provider.configuration();
  }

  async ownTrust(): Promise<JsonProperties> {
    return {
      walletAttestationRequired: true,
      walletProviderTrustLists: [`${this.#address}/api/trustlists/wallet-provider`],
      walletProviderTrustListCertificates: [await this.#text('/api/certificates/ca')],
    };
  }

  lacks(flow: Flow, _format: Format, profile: Profile): string | undefined {
    if (flow === 'batch' && profile === 'eu') return 'it sends one key where keys are attested';
    return undefined;
  }

  async begin({ profile, flow, format }: WalletWorld): Promise<WalletRun> {
    await this.call('DELETE', '/api/credentials');
    await this.call('PUT', '/api/config/conformance', {
      ...{ mode: 'strict', haip: isStrict(profile), encrypted: flow === 'encrypted' },
      vci_version: flow === 'interactive' ? '1.1' : '1.0',
    });
    await this.call('PUT', '/api/config/preferred-format', { format });
    await this.call('DELETE', '/api/log');
    return new Run(this, isStrict(profile));
  }

  async close(): Promise<void> {
    const exited = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    const runs = this.#child.pid !== undefined && this.#child.exitCode === null;
    this.#child.kill('SIGTERM');
    if (runs) await Promise.race([exited, new Promise((resolve) => setTimeout(resolve, 3000).unref())]);
    this.#child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async call(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<JsonProperties> {
    const answer = await fetch(this.#address + path, {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_SECONDS * 1000),
    });
    const text = await answer.text();
    const parsedBody = text.startsWith('{') || text.startsWith('[') ? (JSON.parse(text) as JsonProperties) : { error: text };
    if (!answer.ok) throw new Error(`eudi-dev: ${parsedBody['error_description'] ?? parsedBody['error'] ?? text}`);
    return text === '' ? {} : parsedBody;
  }

  /** @throws Error with the output of the command. */
  async validate(credential: string, trustList: string, haip: boolean): Promise<void> {
    const files = { credential: join(this.#folder, 'credential'), list: join(this.#folder, 'list') };
    writeFileSync(files.credential, credential);
    writeFileSync(files.list, trustList);
    const options = ['validate', '--no-color', '--trust-list', files.list, ...(haip ? ['--haip'] : [])];
    const environment = { HOME: this.#folder, EUDI_DEV_HOME: this.#folder };
    const { code, output } = await runProgram(this.#program, [...options, files.credential], CALL_SECONDS, environment);
    // Warnings about HAIP count as failures.
    if (code !== 0 || /✗|⚠|HAIP 1\.0: (?!no findings)/.test(output)) throw new Error(`eudi-dev validate: ${output}`);
  }

  async #text(path: string): Promise<string> {
    return (await fetch(this.#address + path)).text();
  }

  async #started(): Promise<void> {
    for (let tries = 0; tries < 200; tries++) {
      try {
        if ((await fetch(`${this.#address}/api/version`)).ok) return;
      } catch {
        // The wallet does not listen yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('eudi-dev does not answer within 10 s');
  }
}

type LogEntry = { readonly details?: { readonly response?: { readonly credentials?: readonly unknown[] } } };

class Run implements WalletRun {
  readonly #wallet: EudiDev;
  readonly #haip: boolean;

  constructor(wallet: EudiDev, haip: boolean) {
    this.#wallet = wallet;
    this.#haip = haip;
  }

  async accept({ offer, txCode }: CredentialOfferInput): Promise<number> {
    const offerResponse = await this.#wallet.call('POST', '/api/offers', { uri: offer, ...(txCode && { tx_code: txCode }) });
    const url = offerResponse['authorization_url'];
    if (typeof url === 'string') await this.#authorize(url, String(offerResponse['offer_id']));
    else if (offerResponse['pending'] === true) return 0;
    return this.#copies();
  }

  /** The user's browser goes to the issuer and comes back. */
  async #authorize(url: string, offerId: string): Promise<void> {
    const back = new URL(await approve(url));
    await this.#wallet.call('GET', `/callback${back.search}`);
    for (let tries = 0; tries < 200; tries++) {
      const { status, error } = await this.#wallet.call('GET', `/api/offers/${offerId}`);
      if (status === 'completed') return;
      if (status === 'failed') throw new Error(`eudi-dev: ${error}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('eudi-dev does not finish');
  }

  /** The wallet stores one credential of a batch, so the credentials are counted in its log. */
  async #copies(): Promise<number> {
    const log = (await this.#wallet.call('GET', '/api/log')) as unknown as LogEntry[];
    const issuedCounts = log.map(({ details }) => details?.response?.credentials?.length ?? 0);
    return (await this.#credentials()).length === 0 ? 0 : Math.max(1, ...issuedCounts);
  }

  async collect(): Promise<number> {
    const pending = (await this.#wallet.call('GET', '/api/deferred')) as unknown as { id: string }[];
    for (const { id } of pending) {
      const { collected, reason } = await this.#wallet.call('POST', `/api/deferred/${id}/collect`);
      if (collected !== true) throw new Error(`eudi-dev: ${reason ?? 'not collected'}`);
    }
    return (await this.#credentials()).length;
  }

  async renew(): Promise<number> {
    const [credential] = await this.#credentials();
    await this.#wallet.call('POST', `/api/credentials/${credential?.id}/refresh`);
    return (await this.#credentials()).length;
  }

  async present(uri: string): Promise<Answer> {
    const { response } = await this.#wallet.call('POST', '/api/presentations', { uri });
    const { status_code: status, redirect_uri: redirectUri } = response as JsonProperties;
    return { isAccepted: status === 200, redirectUri: redirectUri as string | undefined };
  }

  /** Verifies with its command, which checks signature, path, times and status. */
  async validate(trustList: string): Promise<void> {
    const [credential] = await this.#credentials();
    const { raw } = await this.#wallet.call('GET', `/api/credentials/${credential?.id}`);
    await this.#wallet.validate(String(raw), trustList, this.#haip);
  }

  async presentToPage(request: PageRequest, origin: string): Promise<Readonly<Record<string, unknown>>> {
    const walletResponse = await this.#wallet.call('POST', '/api/dc-api', { digital: request }, { Origin: origin });
    return walletResponse['data'] as JsonProperties;
  }

  #credentials(): Promise<{ id: string }[]> {
    return this.#wallet.call('GET', '/api/credentials') as unknown as Promise<{ id: string }[]>;
  }
}
