import { expect } from 'chai';
import { type RacedSuite, type Racing, times } from '../../support/raced-services.ts';

const SECRET = 'a-secret-that-is-about-to-go';

/** What becomes of access tokens when the secret is replaced that they were had with. */
function raceClientSecrets(racing: () => Racing): void {
  const client = async (clientId: string) => {
    const { service, token } = racing();
    const json = { clientId, roles: ['issuance:manage', 'issuance:offer'], secret: SECRET };
    const made = await service.call('POST', '/client', { token, json });
    expect(made.status, made.text).to.equal(201);
  };
  const login = async (address: string, client_id: string, client_secret: string) => {
    const response = await fetch(`${address}/oauth2/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', client_id, client_secret }),
    });
    return response.status === 200
      ? ((await response.json()) as { access_token: string }).access_token
      : undefined;
  };
  const OFFER = {
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['pid'],
  };
  /** By a route that reads what is stored, and by one that goes by what is remembered. */
  const uses = async (address: string, token: string): Promise<number[]> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify(OFFER);
    const answers = [
      await fetch(`${address}/issuer/credentials`, { headers }),
      await fetch(`${address}/issuer/offer`, { method: 'POST', headers, body }),
    ];
    return answers.map(({ status }) => status);
  };
  const rotate = async (id: string, query = '') => {
    const { service, token } = racing();
    const answer = await service.call('POST', `/client/${id}/rotate-secret${query}`, { token });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.secret as string;
  };

  it('tokens of a former secret end at once in every process, also where they were used before', async () => {
    const { addresses } = racing();
    await client('turning');
    const tokens = await Promise.all(addresses.map((address) => login(address, 'turning', SECRET)));
    for (const address of addresses) {
      for (const token of tokens) expect(await uses(address, token ?? '')).to.deep.equal([200, 201]);
    }
    const secret = await rotate('turning');
    for (const address of addresses) {
      for (const token of tokens) expect(await uses(address, token ?? '')).to.deep.equal([401, 401]);
      expect(await login(address, 'turning', SECRET)).to.equal(undefined);
      const fresh = await login(address, 'turning', secret);
      expect(await uses(address, fresh ?? '')).to.deep.equal([200, 201]);
    }
  });

  it('they count for the time that was asked for, and not through a second rotation', async () => {
    const { addresses, service, token } = racing();
    await client('graceful');
    const former = (await login(addresses[0] ?? '', 'graceful', SECRET)) ?? '';
    await rotate('graceful', '?graceSeconds=300');
    for (const address of addresses) {
      expect(await uses(address, former)).to.deep.equal([200, 201]);
      expect(await login(address, 'graceful', SECRET), 'the secret itself is gone').to.equal(undefined);
    }
    await rotate('graceful', '?graceSeconds=300');
    for (const address of addresses) expect(await uses(address, former)).to.deep.equal([401, 401]);
    for (const wrong of ['301', '-1', '1.5', 'x']) {
      const path = `/client/graceful/rotate-secret?graceSeconds=${wrong}`;
      expect((await service.call('POST', path, { token })).status, wrong).to.equal(400);
    }
  });

  it('a login that races the rotation leaves no token of the former secret', async () => {
    const { addresses } = racing();
    await client('raced');
    const [tokens] = await Promise.all([
      times(24, (index) => login(addresses[index % addresses.length] ?? '', 'raced', SECRET)),
      rotate('raced'),
    ]);
    for (const former of tokens.filter((one) => one !== undefined)) {
      for (const address of addresses) expect(await uses(address, former)).to.deep.equal([401, 401]);
    }
  });
}

export const clientSecrets: RacedSuite = ['Secrets of clients that are replaced', raceClientSecrets];
