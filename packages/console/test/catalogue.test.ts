import { expect } from 'chai';
import { parseElementValue } from '../../../domain/formats/mdoc/element-values.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { CATALOGUE, type KnownKind } from '../src/pages/credentials/catalogue.ts';

const words = (text: string) => text.trim().split(/\s+/);

/** As the documents have them that `catalogue.ts` names: required claims first, then the others. */
const NAMES: Readonly<Record<string, { type: string; required: string; others: string }>> = {
  pid: {
    type: 'urn:eudi:pid:1',
    required: 'family_name given_name birthdate place_of_birth nationalities issuing_authority issuing_country',
    others: `picture address.formatted address.street_address address.house_number address.postal_code address.locality
      address.region address.country personal_administrative_number birth_family_name birth_given_name sex email phone_number
      date_of_expiry date_of_issuance document_number issuing_jurisdiction trust_anchor attestation_legal_category`,
  },
  'pid-mdoc': {
    type: 'eu.europa.ec.eudi.pid.1',
    required: 'family_name given_name birth_date place_of_birth nationality issuing_authority issuing_country',
    others: `portrait resident_address resident_street resident_postal_code resident_city resident_state resident_country
      personal_administrative_number family_name_birth given_name_birth sex email_address mobile_phone_number expiry_date issuance_date
      document_number issuing_jurisdiction trust_anchor attestation_legal_category`,
  },
  mdl: {
    type: 'org.iso.18013.5.1.mDL',
    required: `family_name given_name birth_date issue_date expiry_date issuing_country issuing_authority document_number portrait
      driving_privileges un_distinguishing_sign`,
    others: `age_over_18 age_over_21 age_in_years age_birth_year administrative_number sex height weight eye_colour hair_colour birth_place
      nationality resident_address resident_city resident_state resident_postal_code resident_country issuing_jurisdiction
      portrait_capture_date family_name_national_character given_name_national_character signature_usual_mark`,
  },
  diploma: { type: 'urn:example:diploma:1', required: 'given_name family_name degree awarding_body', others: 'graduated_on grade' },
  age: { type: 'eu.europa.ec.av.1', required: 'age_over_18', others: '' },
};
const NAMESPACES: Readonly<Record<string, string>> = {
  'pid-mdoc': 'eu.europa.ec.eudi.pid.1',
  mdl: 'org.iso.18013.5.1',
  age: 'eu.europa.ec.av.1',
};

describe('The catalogue of the console', () => {
  it('has each kind once', () => {
    expect(CATALOGUE.map(({ id }) => id)).to.have.members(Object.keys(NAMES));
  });

  const named = ({ namespace, claims }: KnownKind, isRequired: boolean) =>
    claims.filter(({ required }) => required === isRequired).map(({ path }) => path.slice(namespace === undefined ? 0 : 1).join('.'));

  for (const kind of CATALOGUE) {
    const wanted = NAMES[kind.id] ?? { type: '', required: '', others: '' };

    it(`names types and claims as their documents do: ${kind.title}`, () => {
      expect(kind.type).to.equal(wanted.type);
      expect(kind.namespace).to.equal(NAMESPACES[kind.id]);
      for (const { path } of kind.claims) expect(path[0] === kind.namespace, path.join('.')).to.equal(kind.namespace !== undefined);
      expect(named(kind, true)).to.have.members(words(wanted.required));
      expect(named(kind, false)).to.have.members(wanted.others === '' ? [] : words(wanted.others));
    });

    if (kind.namespace !== undefined)
      it(`has examples that an mdoc can carry: ${kind.title}`, () => {
        for (const { path, example } of kind.claims) {
          const [namespace = '', name = ''] = path;
          expect(() => parseElementValue(namespace, name, example as Json), name).to.not.throw();
        }
      });
  }
});
