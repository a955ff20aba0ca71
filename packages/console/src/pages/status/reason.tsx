export function ReasonField() {
  return (
    <label>
      Reason, if there is one to keep
      <input name="reason" maxLength={500} autocomplete="off" aria-describedby="about-reason" />
      <small id="about-reason">
        It stands in the audit log. Wallets and verifiers never see it. No names of persons: the log is kept longer than the session.
      </small>
    </label>
  );
}

export function reasonIn(form: FormData): { readonly reason?: string } {
  const reason = String(form.get('reason') ?? '').trim();
  return reason === '' ? {} : { reason };
}
