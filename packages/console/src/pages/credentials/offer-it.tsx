import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { read } from '../../parts/json-editor.tsx';
import { at, listAt, put, recordAt, textAt } from '../../parts/json-paths.ts';
import type { Identity } from '../../shell/identities.ts';
import { goTo } from '../../shell/place.ts';
import { CATALOGUE } from './catalogue.ts';
import { pathOf } from './claims.ts';

type Offer = { readonly session: string };

/** An offer of what is stored, and the way to its session. */
export function OfferIt({ identity, stored }: { readonly identity: Identity; readonly stored: unknown }) {
  const id = textAt(stored, 'id');
  const act = async (form: FormData) => {
    const text = String(form.get('claims')).trim();
    const parsed = text === '' ? { value: undefined } : read(text);
    if ('fault' in parsed) throw new Error(`The claims are no JSON: ${parsed.fault}`);
    const code = String(form.get('code')).trim();
    const body = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [id],
      ...(parsed.value !== undefined && { credentialClaims: { [id]: { type: 'inline', claims: parsed.value } } }),
      ...(code !== '' && { tx_code: code }),
    };
    const { session } = await ask<Offer>(identity, 'POST', '/issuer/offer', { body });
    goTo('sessions', session);
    return 'The offer is there.';
  };
  return (
    <Confirm label="Offer it" title={`Offer ${id}`} act={act}>
      <label>
        Claims of whom it is offered to, as JSON
        <textarea
          name="claims"
          rows={10}
          spellcheck={false}
          autocomplete="off"
          defaultValue={JSON.stringify(claimsToTry(stored), null, 2)}
        />
      </label>
      <p class="fine">Of nobody real, to try it. Left empty, the claims of the configuration are used.</p>
      <label>
        Transaction code, if the wallet shall ask for one
        <input name="code" autocomplete="off" spellcheck={false} />
      </label>
      <p class="fine">Whoever opens the offer first gets the credential; a code sent on another way keeps others out.</p>
    </Confirm>
  );
}

/** Those of the configuration, or made-up ones of the claims that it describes. */
export function claimsToTry(stored: unknown): unknown {
  const own = [recordAt(stored, 'claims'), recordAt(stored, 'config', 'claimsByNamespace')];
  const given = own.find((claims) => Object.keys(claims).length > 0);
  if (given !== undefined || at(stored, 'claimsWebhook') !== undefined) return given;
  return listAt(stored, 'config', 'claims')
    .map(pathOf)
    .filter((path) => path.length > 0 && !path.includes('*'))
    .reduce<unknown>((claims, path) => put(claims, path, exampleOf(stored, path)), {});
}

function exampleOf(stored: unknown, path: readonly string[]): unknown {
  const format = textAt(stored, 'config', 'format');
  const known = CATALOGUE.filter((kind) => kind.format === format)
    .flatMap(({ claims }) => claims)
    .find((claim) => claim.path.join('\n') === path.join('\n'));
  return known?.example ?? 'Example';
}
