import { ask } from '../../api/call.ts';
import { logIn } from '../../api/log-in.ts';
import { type Identity, know } from '../../shell/identities.ts';
import { DIPLOMA, LICENCE, LICENCE_TYPE, UNIVERSITY } from './samples.ts';

export type Demonstration = { readonly issuer: Identity; readonly verifier: Identity };

export type Progress = (done: string) => void;

type Created = { readonly clients?: readonly { readonly clientId: string; readonly secret: string }[] };
type KeyChain = { readonly rootCertificate?: string };

const ISSUER_ROLES = ['clients:manage', 'issuance:manage', 'issuance:offer'];
const DAY_MS = 86_400_000;
const VERIFIER_ROLES = ['clients:manage', 'presentation:manage', 'presentation:request'];

/** Makes all of it by calls that any client could make. */
export async function demonstrate(root: Identity, tell: Progress): Promise<Demonstration> {
  const name = crypto.randomUUID().slice(0, 6);
  const issuer = await tenant(root, `university-${name}`, 'University of Examples', ISSUER_ROLES);
  tell('An issuer, with keys and a certificate of its own');
  await ask(issuer, 'POST', '/issuer/config', { body: UNIVERSITY });
  await ask(issuer, 'POST', '/issuer/credentials', { body: DIPLOMA });
  tell('A diploma (SD-JWT VC), whose claims can be shown one by one');
  await ask(issuer, 'POST', '/issuer/credentials', { body: LICENCE });
  tell('A driving licence (ISO mdoc)');
  const verifier = await tenant(root, `employer-${name}`, 'Employer of Examples', VERIFIER_ROLES);
  tell('A verifier');
  const { rootCertificate } = await ask<KeyChain>(issuer, 'GET', '/key-chain/signing');
  const trustAnchors = [{ certificate: rootCertificate }];
  for (const question of questionsWith(trustAnchors)) {
    await ask(verifier, 'POST', '/verifier/config', { body: question });
  }
  tell('Two questions, answered by cards of that issuer and of nobody else');
  return { issuer, verifier };
}

async function tenant(root: Identity, id: string, name: string, roles: readonly string[]): Promise<Identity> {
  const endsAt = new Date(Date.now() + DAY_MS).toISOString();
  const body = { id, name, roles, endsAt };
  const { clients = [] } = await ask<Created>(root, 'POST', '/tenant', { body });
  const [administrator] = clients;
  if (administrator === undefined) throw new Error(`the tenant ${id} got no administrator`);
  const identity = await logIn(administrator.clientId, administrator.secret);
  know(identity);
  return identity;
}

function questionsWith(trustAnchors: readonly object[]) {
  return [
    {
      id: 'degree',
      description: 'Who applies says which degree they have',
      dcql_query: {
        credentials: [
          {
            id: 'diploma',
            format: 'dc+sd-jwt',
            meta: { vct_values: [DIPLOMA.vct] },
            claims: [{ path: ['family_name'] }, { path: ['degree'] }],
          },
        ],
      },
      values: 'requested',
      lifeTime: 600,
      trustAnchors,
    },
    {
      id: 'may-drive',
      description: 'Who gets a car may drive it',
      dcql_query: {
        credentials: [
          {
            id: 'licence',
            format: 'mso_mdoc',
            meta: { doctype_value: LICENCE_TYPE },
            claims: [
              { path: [LICENCE_TYPE.replace('.mDL', ''), 'driving_privileges'] },
              { path: [LICENCE_TYPE.replace('.mDL', ''), 'age_over_18'] },
            ],
          },
        ],
      },
      values: 'requested',
      lifeTime: 600,
      trustAnchors,
    },
  ];
}
