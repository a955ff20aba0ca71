import { ApiFailure } from '../api/call.ts';

/** What went wrong, in the words of the service, and what names it in the log. */
export function Problem({ fault }: { readonly fault: unknown }) {
  const message = fault instanceof Error ? fault.message : String(fault);
  const errors = fault instanceof ApiFailure ? fault.errors : [];
  // One fault of one member is often all that the sentence says.
  const isSaid = errors.length === 1 && errors.every(({ message: what }) => message.endsWith(what));
  const more = isSaid ? [] : errors;
  return (
    <div role="alert" class="problem">
      <p>{message}</p>
      {fault instanceof ApiFailure && (
        <>
          {more.length > 0 && (
            <ul>
              {more.map(({ path, message: what }) => (
                <li key={`${path} ${what}`}>
                  <code>{path}</code> {what}
                </li>
              ))}
            </ul>
          )}
          <p class="fine">
            {fault.status} {fault.code}
            {fault.requestId !== '' && (
              <>
                {' · request '}
                <code>{fault.requestId}</code>
              </>
            )}
          </p>
        </>
      )}
    </div>
  );
}
