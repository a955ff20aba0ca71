import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { buildConsole } from '../support/console.ts';
import { startTestService, type TestService } from '../support/test-service.ts';
import { CONFIDENTIAL_CLIENT, startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';
import { expectAccessible } from './support/accessible.ts';
import { openBrowser } from './support/browser.ts';

const CONSOLE_CLIENT = 'the-console';

describe('console login at the OpenID provider of the operator', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let provider: UpstreamProvider;
  let service: TestService;

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    const client = { client_id: CONSOLE_CLIENT, client_secret: 'unused-by-the-console-0123456789' };
    const registered = { ...client, grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };
    provider = await startUpstreamProvider({ clients: [registered] });
    service = await startTestService({
      OIDC: provider.issuer,
      OIDC_CLIENT_ID: CONFIDENTIAL_CLIENT.clientId,
      OIDC_CLIENT_SECRET: CONFIDENTIAL_CLIENT.clientSecret,
      OIDC_CONSOLE_CLIENT_ID: CONSOLE_CLIENT,
      AUTH_CLIENT_ID: '',
      AUTH_CLIENT_SECRET: '',
    });
  });
  after(async () => {
    await browser?.close();
    await service?.close();
    await provider?.close();
  });

  /** The provider's own pages are not what this is about: it answers as soon as it is asked. */
  const visit = async (change: (answer: URL) => void = () => {}): Promise<Page> => {
    const page = await (browser as Browser).newPage();
    const asked: URL[] = [];
    const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' };
    await page.route(`${provider.issuer}/**`, async (route) => {
      const request = route.request();
      const address = new URL(request.url());
      if (address.pathname.endsWith('/openid-configuration')) {
        const answer = await (await fetch(request.url())).text();
        await route.fulfill({ body: answer, contentType: 'application/json', headers: cors });
      } else if (request.isNavigationRequest()) {
        asked.push(address);
        const back = new URL(address.searchParams.get('redirect_uri') ?? '');
        back.searchParams.set('code', 'the-code');
        back.searchParams.set('state', address.searchParams.get('state') ?? '');
        back.searchParams.set('iss', provider.issuer);
        change(back);
        await route.fulfill({ status: 302, headers: { location: back.href } });
      } else {
        const form = new URLSearchParams(request.postData() ?? '');
        const verifier = createHash('sha256')
          .update(form.get('code_verifier') ?? '')
          .digest('base64url');
        const isRight = verifier === asked[0]?.searchParams.get('code_challenge') && form.get('code') === 'the-code';
        const claims = { tenant_id: CONSOLE_CLIENT, roles: ['tenants:manage'] };
        const token = await provider.accessTokenFor('platform-service', { claims, clientId: CONSOLE_CLIENT });
        const json = isRight ? { access_token: token, expires_in: 600 } : { error: 'invalid_grant' };
        await route.fulfill({ status: isRight ? 200 : 400, json, headers: cors });
      }
    });
    await page.goto(`${service.address}/console#tenants`);
    await expectAccessible(page, 'the login');
    await page.getByRole('button', { name: /^Log in at/ }).click();
    return page;
  };

  it('returns the user to the requested page, without parameters in the address', async () => {
    const page = await visit();
    await page.getByRole('heading', { name: 'Tenants', level: 1 }).waitFor();
    expect(page.url()).to.equal(`${service.address}/console#tenants`);
    expect(await page.getByLabel('You are').innerText()).to.include('the service');
    expect(await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])')).to.equal('[{},{},""]');
    expect(await page.getByLabel('Client id').count()).to.equal(0);
    // Where there are no secrets nobody is asked for one.
    await page.getByRole('button', { name: 'Add (a client)' }).click();
    const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
    await dialog.getByRole('button', { name: /^Log in at/ }).waitFor();
    expect(await dialog.getByLabel('Client secret').count()).to.equal(0);
    await expectAccessible(page, 'another login');
  });

  it('rejects a login response that this window did not request, and a response of another provider', async () => {
    const foreign = await visit((back) => back.searchParams.set('state', 'of-somebody-else'));
    await foreign.getByText('not begun in this window').waitFor();
    const mixed = await visit((back) => back.searchParams.set('iss', 'https://evil.example'));
    await mixed.getByText('comes from another provider').waitFor();
    // The metadata say that the provider names itself in answers (RFC 9207 section 2.4).
    const unnamed = await visit((back) => back.searchParams.delete('iss'));
    await unnamed.getByText('comes from another provider').waitFor();
    const refused = await visit((back) => {
      back.searchParams.delete('code');
      back.searchParams.set('error', 'access_denied');
    });
    await refused.getByText('The provider refused: access_denied').waitFor();
  });

  it('removes the login response from the address and the history, whoever sent it', async () => {
    const page = await (browser as Browser).newPage();
    await page.goto(`${service.address}/console?code=of-somebody-else&error_description=call+this+number#tenants`);
    await page.getByRole('button', { name: /^Log in at/ }).waitFor();
    expect(page.url()).to.equal(`${service.address}/console#tenants`);
    expect(await page.content()).not.to.include('call this number');
    const injected = await visit((back) => back.searchParams.set('code', 'of-somebody-else'));
    await injected.getByText('The provider gives no access token').waitFor();
    expect(injected.url()).to.equal(`${service.address}/console#tenants`);
    expect(await injected.evaluate('sessionStorage.length')).to.equal(0);
    await injected.reload();
    await injected.getByRole('button', { name: /^Log in at/ }).waitFor();
  });

  it('allows the page to call the OpenID provider and no other origin', async () => {
    const { headers } = await service.call('GET', '/console');
    expect(headers.get('content-security-policy')).to.include(`connect-src 'self' ${new URL(provider.issuer).origin};`);
  });
});
