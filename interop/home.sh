# Sourced: where the installed peers live. Absolute, because Node resolves packages from it.
RIALTO_INTEROP_HOME=${RIALTO_INTEROP_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/rialto/interop}
case $RIALTO_INTEROP_HOME in
  /*) ;;
  *) RIALTO_INTEROP_HOME=$PWD/$RIALTO_INTEROP_HOME ;;
esac
export RIALTO_INTEROP_HOME
