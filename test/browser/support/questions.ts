import type { Page } from 'playwright-core';
import type { Visitors } from './visitors.ts';

export const MANAGER = ['presentation:manage', 'issuance:manage'];
export const CARD = 'urn:example:card:1';
export const NAMESPACE = 'org.example.card';

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** A question for a card as SD-JWT VC and one as an mdoc. */
export async function makeQuestion(visitors: Visitors, id: string, more: object = {}): Promise<void> {
  const credentials = [
    { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [CARD] }, claims: [{ path: ['name'] }] },
    {
      id: 'plastic',
      format: 'mso_mdoc',
      meta: { doctype_value: `${NAMESPACE}.1` },
      claims: [{ path: [NAMESPACE, 'name'] }],
    },
  ];
  const json = { id, dcql_query: { credentials }, ...more };
  const { service } = visitors.served;
  const made = await service.call('POST', '/verifier/config', { token: visitors.token, json });
  if (made.status !== 201) throw new Error(made.text);
}
